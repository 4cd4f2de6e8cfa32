// Who pushed which group last, as the gateway's own page says.
//
// Each group that an agent pushes carries `persia_agent_owner_info{agent_id="...",agent_gateway="..."} 1`, with a hash of the
// address that it was pushed to: one gateway may have several. The page may be large: it is read piece by piece, and only the
// lines of that family are looked at.
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

// The family, as it stands in a group that is pushed to this base URL.
Snapshot OwnerSnapshot(const std::string& agent_id, const std::string& gateway);

// Tells groups apart as the page does, on which a label with an empty value is like none.
std::string OwnerKey(const Identity& identity);

// 8 hexadecimal digits that stand for a gateway's base URL, the same in each release.
std::string GatewayHash(std::string_view url);

// Of an owner's line with another id nothing is known: a page may say anything.
struct Owner {
  std::string agent_id;      // 16 hexadecimal digits
  std::string gateway_hash;  // of the URL that it was pushed to; empty if an older agent pushed it

  friend bool operator==(const Owner&, const Owner&) = default;
};

// By OwnerKey.
using Owners = std::map<std::string, Owner>;

class OwnerScan {
 public:
  // Of the groups of this job.
  explicit OwnerScan(std::string job) : job_(std::move(job)) {}

  // False: that was enough, no page is so long.
  bool Add(std::string_view piece);
  // There may have been more owners: nothing is to be ended on the strength of this.
  [[nodiscard]] bool cut_short() const { return cut_short_; }
  [[nodiscard]] const Owners& owners() const { return owners_; }

 private:
  void EndLine();

  const std::string job_;
  size_t read_ = 0;
  bool cut_short_ = false;
  std::string line_;     // as far as it may be one of the family
  bool passed_ = false;  // it is not
  Owners owners_;
};

}  // namespace persia::agent
