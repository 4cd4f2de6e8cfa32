// A small tmpfs, for tests of a full filesystem.
#pragma once

#include <string>

namespace persia::metrics::tests {

// Mounts a tmpfs at `at`, for this process and its children, in a mount namespace that ends with them. `options`: "size=2m".
void MountSmallFilesystem(const std::string& at, const char* options);

// Writes a file `filler` until nothing is free.
void FillUp(const std::string& directory);

// The same, until `left` bytes are free.
void FillUpTo(const std::string& directory, unsigned long left);

}  // namespace persia::metrics::tests
