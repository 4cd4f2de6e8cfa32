// The agent that pushed each group last, read from the gateway's own /metrics.
//
// Each group that an agent pushes has `persia_agent_owner_info{agent_id="...",agent_gateway="..."} 1`. `agent_gateway` is a
// hash of the address that it was pushed to, since one gateway may have several. The page may be large: it is read piece by
// piece, and only the lines of that family are parsed.
//
//   OwnerScan scan("dlrm");
//   request.receive = [&](int, std::string_view piece) { return scan.Add(piece); };
//   ... scan.owners().find(OwnerKey(identity))
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

// No other metric of a group that is pushed can have this name.
inline constexpr std::string_view kOwnerFamily = "persia_agent_owner_info";

// The family, as in a group that is pushed to this base URL.
Snapshot OwnerSnapshot(const std::string& agent_id, const std::string& gateway);

// A key of the group on the page, where a label with an empty value is the same as none.
std::string OwnerKey(const Identity& identity);

// 8 hexadecimal digits, the same in each release.
std::string GatewayHash(std::string_view url);

struct Owner {
  std::string agent_id;      // 16 hexadecimal digits
  std::string gateway_hash;  // of the URL that it was pushed to; empty if an older agent pushed it

  friend bool operator==(const Owner&, const Owner&) = default;
};

// By OwnerKey.
using Owners = std::map<std::string, Owner>;

class OwnerScan {
 public:
  // Reads the groups of this job only.
  explicit OwnerScan(std::string job) : job_(std::move(job)) {}

  // False: the page is too long, no more of it is read.
  bool Add(std::string_view piece);
  // There may be more owners, so that a group without an owner must not be deleted.
  [[nodiscard]] bool cut_short() const { return cut_short_; }
  [[nodiscard]] const Owners& owners() const { return owners_; }

 private:
  void EndLine();

  const std::string job_;
  size_t read_ = 0;
  bool cut_short_ = false;
  std::string line_;      // as far as it may be one of the family
  bool skipped_ = false;  // it is not
  Owners owners_;
};

}  // namespace persia::agent
