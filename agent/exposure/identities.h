// The identity that series are exposed with: the job, and the labels that every series of a process carries.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "segment/segment_records.h"

namespace persia::agent {

// Sets and renames the labels of one series.

bool HasLabel(const Labels& labels, std::string_view name);

// Sets a label. An existing label of that name is renamed to `exported_<name>`.
void SetLabel(Labels& labels, const std::string& name, std::string value);

// Renames each label with a reserved name to `exported_<name>`, as Prometheus does, and removes labels with an empty value,
// which Prometheus treats as absent. Reserved are `job`, the labels of `identity`, and `le` or `quantile` for the types that
// use it. Returns whether anything changed.
bool FitLabels(Labels& labels, MetricType type, const Identity& identity);

struct IdentityRules {
  std::string job;
  std::string ip_addr{};  // of this host; empty: no such label
  Labels labels{};        // of the settings, for every identity; a label that the identity already has wins
  // The label `agent`, which distinguishes the series of two agents with the same identities; empty: no such label.
  std::string agent_id{};

  friend bool operator==(const IdentityRules&, const IdentityRules&) = default;
};

// The identity of a process: `job`, `instance`, `ip_addr` and, unless it is empty, `role`. Labels are sorted by name.
Identity ProcessIdentity(std::string_view role, int32_t replica, const IdentityRules& rules);

// Adds the labels of the settings and the label `agent`.
Identity ExposedIdentity(const Identity& process, const IdentityRules& rules);

// Numbers the identities of a plan: those of the processes, with their own roles and with the roles that the naming sets, and
// those of the agent's own sources.
//
//   PlanIdentities identities(rules);
//   identities.AddSegment(process);  identities.AddRole("trainer");  identities.Add(own);  identities.Number();
//   identities.IndexOf(0);  identities.IndexOf(0, "trainer");  identities.IndexOf(own);
//
// Not thread-safe.
class PlanIdentities {
 public:
  explicit PlanIdentities(const IdentityRules& rules) : rules_(rules) {}

  void AddSegment(const SegmentIdentity& process) { segments_.push_back({process.role, process.replica, {{"", 0}}}); }
  // Adds another role for the segment added last. REQUIRES: `role` is not empty.
  void AddRole(const std::string& role) { segments_.back().indexes.emplace(role, 0); }
  // `process` is as ProcessIdentity returns it.
  void Add(const Identity& process) { all_.push_back(ExposedIdentity(process, rules_)); }
  // Assigns the indexes. REQUIRES: all identities were added.
  void Number();

  // The index of a segment's identity, with its own role or an added one. REQUIRES: Number was called.
  [[nodiscard]] uint32_t IndexOf(size_t segment, const std::string& role = {}) const {
    return segments_[segment].indexes.at(role);
  }
  // REQUIRES: Number was called, and `process` was added.
  [[nodiscard]] uint32_t IndexOf(const Identity& process) const { return Find(ExposedIdentity(process, rules_)); }
  // Sorted, without duplicates.
  [[nodiscard]] const std::vector<Identity>& List() const { return all_; }

 private:
  struct Segment {
    std::string role;
    int32_t replica;
    std::map<std::string, uint32_t> indexes;  // by role; the process's own is ""
  };

  [[nodiscard]] uint32_t Find(const Identity& exposed) const;
  [[nodiscard]] Identity IdentityOf(const Segment& segment, const std::string& role) const;

  const IdentityRules& rules_;
  std::vector<Segment> segments_;
  std::vector<Identity> all_;
};

}  // namespace persia::agent
