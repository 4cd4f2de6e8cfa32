// How many series and families are exposed, and how long label values may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/snapshot.h"

namespace persia::agent {

// Why series are left out of the exposition.
//
// A rule can also drop a whole metric (naming/mapping_rules.h); that is not counted here. exposure/README.md lists the later
// steps that leave out series for one destination.

// The number of series left out, by reason.
struct SeriesLeftOut {
  // series_limits.h
  size_t agent_limit = 0;
  size_t instance_limit = 0;
  size_t label_value_limit = 0;
  size_t family_limit = 0;
  // family_conflicts.h: another definition of the name won.
  size_t definition = 0;
  // draft_layout.h: another series has the same labels.
  size_t collision = 0;
};

// Limits of the exposed series. Series beyond a limit are left out, the latest first.
struct SeriesLimits {
  size_t series = 200'000;
  size_t series_of_instance = 50'000;  // of one identity
  size_t label_value_bytes = 1024;
  size_t families = 20'000;  // names of metrics; no setting

  friend bool operator==(const SeriesLimits&, const SeriesLimits&) = default;
};

// Admits series one by one. Not thread-safe.
class SeriesLimiter {
 public:
  explicit SeriesLimiter(const SeriesLimits& limits) : limits_(limits) {}

  // Whether the limits allow one more series of this family and identity; if not, counts it as left out.
  bool Admit(const std::string& family, uint32_t identity, const Labels& labels);
  // Reports each limit that was reached. `identities`: by index.
  void Report(const std::vector<Identity>& identities, Diagnostics& diagnostics) const;

  // The caller counts the other reasons.
  SeriesLeftOut left_out;

 private:
  const SeriesLimits limits_;
  size_t series_ = 0;                               // admitted
  std::vector<size_t> series_of_;                   // by identity
  std::map<uint32_t, std::string> over_limit_;      // by identity: the first family with a series beyond a limit
  std::map<std::string, std::string> long_labels_;  // by family: the first label with a value beyond the limit
};

}  // namespace persia::agent
