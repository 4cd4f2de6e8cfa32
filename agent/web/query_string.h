// The parameters of a request: `name=value&name=value`, percent-encoded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// In their order. A parameter without `=` has an empty value; empty ones are left out.
Parameters ParseParameters(std::string_view query);

}  // namespace persia::agent
