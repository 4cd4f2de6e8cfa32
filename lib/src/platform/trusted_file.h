// Whether a file is used that another user may have put in its place. The library and the agent use the same check. For
// directories: trusted_directory.h.
//
//   std::string distrust;
//   const int fd = OpenTrustedFile(directory_fd, "agent.conf", O_RDONLY, TrustIn(directory_fd), distrust);
//
// Thread safety: functions without a state.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "descriptor.h"

namespace persia::metrics {

struct FileTrust {
  mode_t type = S_IFREG;                      // or S_IFIFO
  std::optional<uid_t> owner = geteuid();     // beside root; null: any, where no other user can put files
  std::optional<gid_t> group = std::nullopt;  // whose files may be any user's
  bool may_have_names = false;                // others than this one: a member of the group may have linked a file of ours here
};

// Whether the mode is that of a directory that its group shares.
inline bool IsShared(mode_t directory) { return (directory & 02770) == 02770 && (directory & 0002) == 0; }

// For regular files of a trusted directory.
inline FileTrust TrustIn(int directory) {
  struct stat info {};
  if (fstat(directory, &info) != 0) return {};
  if (!IsShared(info.st_mode)) return {.owner = std::nullopt, .may_have_names = true};
  return {.group = info.st_gid};
}

// Why the file is not trusted, to follow its name; empty: it is.
inline std::string DistrustOf(const struct stat& info, const FileTrust& trust) {
  if ((info.st_mode & S_IFMT) != trust.type) return trust.type == S_IFIFO ? "is not a named pipe" : "is not a regular file";
  const bool is_trusted_owner = !trust.owner || info.st_uid == *trust.owner || info.st_uid == 0;
  if (!is_trusted_owner && info.st_gid != trust.group)
    return "belongs to another user (" + std::to_string(info.st_uid) + ", group " + std::to_string(info.st_gid) + ")";
  if (info.st_nlink > 1 && !trust.may_have_names) return "has " + std::to_string(info.st_nlink) + " names";
  return "";
}

// As openat, but follows no link and does not wait for a pipe's other end. A file that is only read may have other names. -1:
// `distrust` says why the file is not trusted or, if it is empty, errno why it cannot be opened.
inline int OpenTrustedFile(int directory, const std::string& name, int flags, FileTrust trust, std::string& distrust,
                           mode_t mode = 0) {
  if ((flags & O_ACCMODE) == O_RDONLY) trust.may_have_names = true;
  distrust.clear();
  Descriptor fd(openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode));
  if (!fd.valid() && errno == ELOOP) distrust = "is a symbolic link, which is not followed";
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return -1;
  distrust = DistrustOf(info, trust);
  return distrust.empty() ? fd.Release() : -1;
}

}  // namespace persia::metrics
