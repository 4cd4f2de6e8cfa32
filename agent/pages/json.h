// How answers are written: the one place that knows the library. For the sources of this room and its tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "pages/json_answer.h"

namespace persia::agent {

using Json = nlohmann::ordered_json;

// Text that is not valid UTF-8 has U+FFFD in its place; a number that is not finite is null.
inline JsonAnswer AnswerWith(const Json& json, int status = 200) {
  return {status, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}
inline JsonAnswer RefuseWith(int status, std::string_view why) { return AnswerWith({{"error", why}}, status); }

}  // namespace persia::agent
