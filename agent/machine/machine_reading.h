// The values that the sources of this folder read, before they have a layout.
//
//   constexpr MachineFamily kFree{"persia_filesystem_avail_bytes", MetricType::kGauge, "..."};
//   reading.Add(kFree, {{"use", "state"}}, 12.0);
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/rows.h"

namespace persia::agent {

using MachineFamily = Rows::Family;

// Microseconds, which many files of the kernel have, in seconds.
inline constexpr double kMicro = 1e-6;

class MachineReading {
 public:
  struct Series {
    const MachineFamily* family = nullptr;
    Labels labels;
    double value = 0;
  };

  // REQUIRES: `family` is a constant; no other series has this family and these labels.
  void Add(const MachineFamily& family, Labels labels, double value) {
    std::ranges::sort(labels);
    series_.push_back({&family, std::move(labels), value});
  }
  // Adds nothing if the kernel has no such number.
  void Add(const MachineFamily& family, Labels labels, std::optional<uint64_t> number, double scale = 1) {
    if (number) Add(family, std::move(labels), static_cast<double>(*number) * scale);
  }

  // Sorted by family and labels.
  std::vector<Series> TakeSorted() {
    std::ranges::sort(series_, [](const Series& a, const Series& b) {
      return std::tie(a.family->name, a.labels) < std::tie(b.family->name, b.labels);
    });
    return std::move(series_);
  }

 private:
  std::vector<Series> series_;
};

}  // namespace persia::agent
