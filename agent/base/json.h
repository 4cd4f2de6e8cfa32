// Writes JSON, and reads small files of it. The adapter of nlohmann's library; job/emit_line.cc and top/job_status.cc read
// what comes often, with simdjson.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace persia::agent {

using Json = nlohmann::ordered_json;

// On one line. Invalid UTF-8 is replaced by U+FFFD; NaN and infinities become null.
std::string WriteJson(const Json& json);

// Of one document; is_discarded() if the text is none.
Json ParseJson(std::string_view text);

// `text` as a JSON string, with its quotes.
std::string JsonString(std::string_view text);

}  // namespace persia::agent
