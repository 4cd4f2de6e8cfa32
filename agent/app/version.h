// The version that is being built.
#pragma once

namespace persia::agent {

inline constexpr char kVersion[] = PERSIA_METRICS_VERSION;

}  // namespace persia::agent
