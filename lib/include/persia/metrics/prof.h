// torchelastic's `prof`: how often something succeeds and fails, and how long it takes.
//
//   {
//     persia::metrics::Prof prof("train_step", "my_app");
//     TrainStep();                                 // leaving it by an exception is a failure
//   }
//   auto step = persia::metrics::Profiled("train_step", TrainStep);
//
// At its end the group is given `<key>.success` or `<key>.failure` (1 each), and `<key>.duration.ms`, in whole milliseconds.
// Thread safety: an object belongs to one thread.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "persia/metrics/metric_stream.h"

namespace persia::metrics {

class Prof {
 public:
  explicit Prof(std::string_view key, std::string_view group = kTorchelasticGroup)
      : key_(key), group_(group), exceptions_(std::uncaught_exceptions()), began_(std::chrono::steady_clock::now()) {}
  ~Prof() {
    const bool failed = std::uncaught_exceptions() > exceptions_;
    const auto took = std::chrono::steady_clock::now() - began_;
    PutMetric(key_ + (failed ? ".failure" : ".success"), 1, group_);
    PutMetric(key_ + ".duration.ms", static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()),
              group_);
  }
  Prof(const Prof&) = delete;
  Prof& operator=(const Prof&) = delete;

 private:
  const std::string key_;
  const std::string group_;
  const int exceptions_;
  const std::chrono::steady_clock::time_point began_;
};

// `call`, of which each run is such a scope.
template <class Call>
auto Profiled(std::string key, Call call, std::string group = std::string(kTorchelasticGroup)) {
  return
      [key = std::move(key), group = std::move(group), call = std::move(call)](auto&&... arguments) mutable -> decltype(auto) {
        const Prof prof(key, group);
        return call(std::forward<decltype(arguments)>(arguments)...);
      };
}

}  // namespace persia::metrics
