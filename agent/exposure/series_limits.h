// How many series and families are exposed, and how long label values may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exposure/series_left_out.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"

namespace persia::agent {

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
