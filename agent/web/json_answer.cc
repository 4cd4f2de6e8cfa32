#include "web/json_answer.h"

namespace persia::agent {

JsonAnswer AnswerWith(const Json& json, int status) { return {status, WriteJson(json) + "\n"}; }

JsonAnswer RefuseWith(int status, std::string_view error) { return AnswerWith({{"error", error}}, status); }

}  // namespace persia::agent
