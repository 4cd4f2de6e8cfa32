// The version of this build.
#pragma once

namespace persia::agent {

inline constexpr char kVersion[] = PERSIA_METRICS_VERSION;

}  // namespace persia::agent
