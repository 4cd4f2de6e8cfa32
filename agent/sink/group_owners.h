// Who pushed which group last, as the gateway's own page says.
//
// Each group that an agent pushes carries `persia_agent_owner_info{agent_id="..."} 1`. The page may be large: it is read piece
// by piece, and only the lines of that family are looked at.
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

// The family's lines in the text of a group.
std::string OwnerText(const std::string& agent_id);

// Tells groups apart as the page does, on which a label with an empty value is like none.
std::string OwnerKey(const Identity& identity);

// Agent ids by OwnerKey.
using Owners = std::map<std::string, std::string>;

class OwnerScan {
 public:
  // Of the groups of this job.
  explicit OwnerScan(std::string job) : job_(std::move(job)) {}

  // False: that was enough, no page is so long.
  bool Add(std::string_view piece);
  [[nodiscard]] const Owners& owners() const { return owners_; }

 private:
  void EndLine();

  const std::string job_;
  size_t read_ = 0;
  std::string line_;     // as far as it may be one of the family
  bool passed_ = false;  // it is not
  Owners owners_;
};

}  // namespace persia::agent
