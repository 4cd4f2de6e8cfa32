// The parameters of a request: `name=value&name=value`, each percent-encoded as browsers write it.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// In their order; one without `=` has an empty value, an empty one is left out.
Parameters ParseParameters(std::string_view query);

}  // namespace persia::agent
