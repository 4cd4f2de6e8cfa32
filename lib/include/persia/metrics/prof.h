// torchelastic's `prof`: counts how often a scope or a function succeeds and fails, and measures how long it takes.
//
//   {
//     persia::metrics::Prof prof("train_step", "my_app");
//     TrainStep();                                 // an exception counts as a failure
//   }
//   auto step = persia::metrics::Profiled("train_step", TrainStep);
//
// At the end of the scope, the value 1 is added to `<key>.success` or `<key>.failure` of the group, and the duration in whole
// milliseconds to `<key>.duration.ms`.
// Thread safety: an object belongs to one thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "persia/metrics/metric_stream.h"

namespace persia::metrics {
inline namespace abi_1 {

// Measures the scope in which it is declared.
class PERSIA_METRICS_API Prof {
 public:
  // Starts to measure. If memory runs out, it measures nothing, which is counted as a dropped measurement.
  [[nodiscard]] explicit Prof(std::string_view key, std::string_view group = kTorchelasticGroup) noexcept;
  // Adds the values. The scope has failed if an exception leaves it.
  ~Prof();
  Prof(const Prof&) = delete;
  Prof& operator=(const Prof&) = delete;

 private:
  std::string key_;
  std::string group_;
  bool measures_ = true;  // false: memory ran out
  const int exceptions_;  // in flight when it began
  const std::chrono::steady_clock::time_point began_;
};

// Wraps `call` so that each run is measured by a Prof. The result takes the arguments of `call`, returns what it returns, and
// passes its exceptions on.
template <class Call>
[[nodiscard]] auto Profiled(std::string key, Call call, std::string group = std::string(kTorchelasticGroup)) {
  return
      [key = std::move(key), group = std::move(group), call = std::move(call)](auto&&... arguments) mutable -> decltype(auto) {
        const Prof prof(key, group);
        return call(std::forward<decltype(arguments)>(arguments)...);
      };
}

}  // namespace abi_1
}  // namespace persia::metrics
