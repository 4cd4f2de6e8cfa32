// An answer of /api/v1.
#pragma once

#include <string>
#include <string_view>

namespace persia::agent {

struct JsonAnswer {
  int status = 200;
  std::string body;
};

// {"error": why}, which quotes what is wrong.
JsonAnswer RefuseWith(int status, std::string_view why);

}  // namespace persia::agent
