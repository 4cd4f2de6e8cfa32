// Whose the series of a plan are: an identity for each process's instance, and for each role to which the naming leads some of
// a process's families.
//
//   identities.AddSegment(process);  identities.AddRole("trainer");  ...  identities.Number(common);
//   identities.IndexOf(0);  identities.IndexOf(0, "trainer");
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "source/segment_records.h"

namespace persia::agent {

// What stands on every identity.
struct MergeIdentity {
  std::string job;
  std::string ip_addr;  // may be empty: no such label
};

// The identity that series of such a process are exposed with.
Identity ExposedIdentity(const SegmentIdentity& process, const MergeIdentity& identity);

class PlanIdentities {
 public:
  void AddSegment(const SegmentIdentity& process) { segments_.push_back({process, {{"", 0}}}); }
  // A role besides its own, of the segment that was added last. REQUIRES: not empty.
  void AddRole(const std::string& role) { segments_.back().indexes.emplace(role, 0); }
  // Once all have been added.
  void Number(const MergeIdentity& common);

  // The index of a segment's identity, with its own role or one that was added. REQUIRES: Number.
  [[nodiscard]] uint32_t IndexOf(size_t segment, const std::string& role = {}) const {
    return segments_[segment].indexes.at(role);
  }
  // Sorted, none twice.
  [[nodiscard]] std::vector<Identity> Take() { return std::move(all_); }

 private:
  struct Segment {
    SegmentIdentity process;
    std::map<std::string, uint32_t> indexes;  // by role; its own under ""
  };

  std::vector<Segment> segments_;
  std::vector<Identity> all_;
};

}  // namespace persia::agent
