// An answer of /api/v1.
#pragma once

#include <string>

namespace persia::agent {

struct JsonAnswer {
  int status = 200;
  std::string body;
};

}  // namespace persia::agent
