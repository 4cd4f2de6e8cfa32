// How answers are written: the one place that knows the library. For the sources of this room and its tests.
#pragma once

#include <nlohmann/json.hpp>

#include "pages/json_answer.h"

namespace persia::agent {

using Json = nlohmann::ordered_json;

// Text that is not valid UTF-8 has U+FFFD in its place; a number that is not finite is null.
JsonAnswer AnswerWith(const Json& json, int status = 200);

}  // namespace persia::agent
