#include "base/json.h"

namespace persia::agent {

std::string WriteJson(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json ParseJson(std::string_view text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

std::string JsonString(std::string_view text) { return WriteJson(text); }

}  // namespace persia::agent
