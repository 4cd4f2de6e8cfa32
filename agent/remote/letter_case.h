// Upper and lower case of UTF-8 text, letter by letter, as in Unicode.
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace persia::agent {

std::string Lowercase(std::string_view text);
std::string Uppercase(std::string_view text);

}  // namespace persia::agent
