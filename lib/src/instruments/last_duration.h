// The gauge of a time cost's last duration.
#pragma once

#include <string>
#include <string_view>

#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

inline std::string LastName(std::string_view name) { return std::string(name) + "_sec"; }
inline Description AboutLast(const Description& about) {
  return {.help = about.help + " The last one.", .unit = about.unit, .labels = about.labels};
}

}  // namespace abi_1
}  // namespace persia::metrics
