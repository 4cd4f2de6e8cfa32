#include "net/response_errors.h"

#include <algorithm>

namespace persia::agent {

bool IsRetryable(int status) { return status == 429 || status >= 500; }

bool IsRedirect(int status) { return status == 301 || status == 302 || status == 307 || status == 308; }

std::string BodyExcerpt(std::string body, size_t max_bytes) {
  while (!body.empty() && static_cast<unsigned char>(body.back()) <= ' ') body.pop_back();
  std::replace_if(
      body.begin(), body.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  if (body.size() > max_bytes) {
    // Not within a character: the further bytes of one are 10xxxxxx.
    while (max_bytes > 0 && (static_cast<unsigned char>(body[max_bytes]) & 0xc0) == 0x80) --max_bytes;
    body.resize(max_bytes);
    body += "...";
  }
  return body;
}

}  // namespace persia::agent
