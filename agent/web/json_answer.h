// A response of /api/v1.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace persia::agent {

struct JsonAnswer {
  int status = 200;
  std::string body;
};

JsonAnswer AnswerWith(const Json& json, int status = 200);
// {"error": error}
JsonAnswer RefuseWith(int status, std::string_view error);

}  // namespace persia::agent
