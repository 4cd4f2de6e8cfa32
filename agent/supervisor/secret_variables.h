// Which variables of the environment are for the agent alone: neither the command nor the supervisor's own environment has
// them.
//
// Included by programs of different C libraries.
#pragma once

#include <stddef.h>
#include <string.h>

namespace persia::supervisor {

// Whether `variable`, NAME=VALUE, is one of the agent's and has a secret: a password, a token, or an address with a user, a
// query or a fragment.
inline bool HoldsSecret(const char* variable) {
  const char* const name_end = strchr(variable, '=');
  if (name_end == nullptr || strncmp(variable, "PERSIA_", 7) != 0) return false;
  const auto ends_with = [&](const char* word) {
    const size_t size = strlen(word);
    return static_cast<size_t>(name_end - variable) >= size && strncmp(name_end - size, word, size) == 0;
  };
  if (ends_with("_PASSWORD") || ends_with("_TOKEN")) return true;
  const bool is_address = ends_with("_URL") || ends_with("_ADDR") || strstr(name_end, "://") != nullptr;
  return is_address && strpbrk(name_end, "@?#") != nullptr;
}

}  // namespace persia::supervisor
