// What a sink makes of an answer that is not 2xx.
#pragma once

#include <cstddef>
#include <string>

namespace persia::agent {

// Whether the same request may pass later: 429 and 5xx.
[[nodiscard]] bool MayPassLater(int status);

// A body for a line of the log: in one line, and shortened to that many bytes.
std::string QuotedBody(std::string body, size_t max_bytes);

}  // namespace persia::agent
