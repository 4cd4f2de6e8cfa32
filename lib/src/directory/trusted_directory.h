// Opens the directory of a job's segments or of an agent's state, unless another user could have prepared it or can change what
// is in it. The library and the agent use the same checks.
//
//   std::string error;
//   const int fd = OpenTrustedDirectory({.path = "/dev/shm/persia-metrics-0/dlrm"}, error);
//
// Thread safety: all functions may be called by several threads at a time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "trusted_file.h"  // IsShared

namespace persia::metrics {
inline namespace abi_1 {

struct TrustedDirectory {
  std::string path;
  // Whose members may own and share the directory (mode 2770). Without it, only this user and root may own it.
  std::optional<gid_t> group = std::nullopt;
  bool create = true;
  // How the user gives the path and the group, for errors.
  const char* setting = "metrics_dir";
  const char* group_setting = "metrics_dir_group";
};

// The path's directory, unchecked but for the way to it: a symbolic link on it is followed only if root or this user owns it,
// and the parent of default directories must be this user's alone. Creates the directory and its parent if they are missing: no
// other one, since a typing error should not make a tree. Returns a descriptor, or -1 and the error.
int OpenDirectoryPath(const TrustedDirectory& wanted, std::string& error);

// Why an opened directory is not trusted; empty: it is.
std::string DistrustOf(const struct stat& info, const TrustedDirectory& wanted);

// Both in a row.
int OpenTrustedDirectory(const TrustedDirectory& wanted, std::string& error);

}  // namespace abi_1
}  // namespace persia::metrics
