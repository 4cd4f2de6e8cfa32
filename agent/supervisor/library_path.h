// The libraries of the job's environment, such as conda's, are not the agent's: older ones would keep its program from
// starting. So the linker does not see the variable that names their folders. The agent looks there for the GPU driver's
// library alone.
//
// Included by programs of different C libraries.
#pragma once

#include <string.h>

namespace persia::supervisor {

constexpr char kLinkersLibraryPath[] = "LD_LIBRARY_PATH";
// Its name in the agent's environment: its end, so that renaming needs no memory.
constexpr const char* kLibraryPath = kLinkersLibraryPath + 2;

// Returns the environment, changed.
inline char** HideLibraryPath(char** environment) {
  constexpr size_t kNameBytes = sizeof kLinkersLibraryPath - 1;
  for (char** entry = environment; *entry != nullptr; ++entry)
    if (strncmp(*entry, kLinkersLibraryPath, kNameBytes) == 0 && (*entry)[kNameBytes] == '=') *entry += 2;
  return environment;
}

}  // namespace persia::supervisor
