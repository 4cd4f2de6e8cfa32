// Classifies and quotes responses that are not 2xx.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>

namespace persia::agent {

// Whether the same request may succeed later: 429 and 5xx.
[[nodiscard]] bool IsRetryable(int status);

// Whether the status asks to send the same request, with method and body, to another URL.
[[nodiscard]] bool IsRedirect(int status);

// A response body for a log line: on one line, at most `max_bytes`.
std::string BodyExcerpt(std::string body, size_t max_bytes);

}  // namespace persia::agent
