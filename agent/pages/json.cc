#include "pages/json.h"

namespace persia::agent {

JsonAnswer AnswerWith(const Json& json, int status) {
  return {status, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

JsonAnswer RefuseWith(int status, std::string_view why) { return AnswerWith({{"error", why}}, status); }

}  // namespace persia::agent
