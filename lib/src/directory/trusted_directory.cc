#include "trusted_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "descriptor.h"
#include "job_directory.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

bool OwnedByRootOrUs(const struct stat& info) { return info.st_uid == 0 || info.st_uid == geteuid(); }

// No descriptor is lost if memory runs out: each has an owner.
std::string OpenErrorText(const char* what, const std::string& path, int error, const char* setting) {
  const std::string text = std::string("cannot ") + what + ' ' + path + ": " + std::strerror(error);
  if (error == EMFILE || error == ENFILE) return text + "; raise the limit on open files";
  const bool is_closed = std::string_view(what).starts_with("open") && (error == EACCES || error == EPERM);
  return text + (is_closed ? "; make it accessible to this user" : "; create it") + ", or set " + setting +
         " to a directory of your own";
}

std::string Attributes(const struct stat& info) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
  return "owner " + std::to_string(info.st_uid) + ", group " + std::to_string(info.st_gid) + ", mode " + mode;
}

std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) components.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return components;
}

// The name of a new directory is on disk when it returns: without it, a power cut would lose all that is in the directory.
// Returns an error number.
int Create(int parent, const char* name) {
  if (mkdirat(parent, name, 0700) == 0) {
    fchmodat(parent, name, 0700, 0);  // regardless of the umask
    const Descriptor readable(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (readable.valid()) fsync(readable.get());  // some filesystems do not support it
    return 0;
  }
  const int error = errno;
  // On a read-only filesystem, mkdirat fails with EROFS even if the directory exists.
  return error == EEXIST || faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : error;
}

// A directory on the way to the wanted one. Anybody can make a symbolic link in /tmp or /dev/shm.
int OpenOnTheWay(int parent, const std::string& name, const std::string& path, const char* setting, std::string& error) {
  int fd = openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  const Descriptor link(fd);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    error = OpenErrorText("open", path, errno, setting);
    return -1;
  }
  if (S_ISLNK(info.st_mode) && !OwnedByRootOrUs(info)) {
    error = path + " is a symbolic link of another user (" + std::to_string(info.st_uid) + "); it is not followed";
    return -1;
  }
  fd = S_ISLNK(info.st_mode) ? openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)
                             : openat(link.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) error = errno == ENOTDIR ? path + " is not a directory" : OpenErrorText("open", path, errno, setting);
  return fd;
}

}  // namespace

int OpenDirectoryPath(const TrustedDirectory& wanted, std::string& error) {
  error.clear();
  const std::vector<std::string> components = Components(wanted.path);
  if (components.empty()) {
    error = std::string(wanted.setting) + ": \"" + wanted.path + "\" cannot be a job's directory";
    return -1;
  }
  const std::string default_parent = DefaultMetricsDir(geteuid(), "");
  std::string path = wanted.path.starts_with('/') ? "/" : "";
  path.reserve(wanted.path.size() + 2);  // so that nothing is allocated while no Descriptor owns the parent
  int parent = open(path.empty() ? "." : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; parent >= 0; ++i) {
    const Descriptor owner(parent);
    const std::string& name = components[i];
    const size_t left = components.size() - i;
    path += name;
    if (const int failed = wanted.create && left <= 2 ? Create(parent, name.c_str()) : 0; failed != 0) {
      error = OpenErrorText("create the directory", path, failed, wanted.setting);
      return -1;
    }
    if (left == 1) {
      const int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (fd < 0) error = OpenErrorText("open the directory", wanted.path, errno, wanted.setting);
      return fd;
    }
    parent = OpenOnTheWay(parent, name, path, wanted.setting, error);
    path += '/';
    struct stat info {};
    if (parent >= 0 && path == default_parent && !wanted.group &&
        (fstat(parent, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 0022) != 0)) {
      const Descriptor refused(parent);
      error = "the directory " + path + " (" + Attributes(info) + ") is not this user's alone (owner " +
              std::to_string(geteuid()) + ", 0700); remove it, or set " + wanted.setting + " to a directory of your own";
      return -1;
    }
  }
  error = "the directory " + wanted.path +
          " cannot be used: " + (error.empty() ? OpenErrorText("open", path, errno, wanted.setting) : error);
  return -1;
}

std::string DistrustOf(const struct stat& info, const TrustedDirectory& wanted) {
  const bool ours = info.st_uid == geteuid() && (info.st_mode & 0022) == 0;
  const std::string place = "the directory " + wanted.path + " (" + Attributes(info) + ") ";
  const std::string other = std::string(", or set ") + wanted.setting + " to another directory";
  if ((!ours && !IsShared(info.st_mode)) || (wanted.group && info.st_gid != *wanted.group)) {
    return place + "is neither this user's alone (owner " + std::to_string(geteuid()) +
           ", 0700) nor shared with a group (2770, " + wanted.group_setting + "); change its mode" + other;
  }
  if (!ours && !OwnedByRootOrUs(info) && !wanted.group) {
    return place + "is another user's; if its group is to share it, set " + wanted.group_setting + " to " +
           std::to_string(info.st_gid) + other;
  }
  return "";
}

int OpenTrustedDirectory(const TrustedDirectory& wanted, std::string& error) {
  Descriptor directory(OpenDirectoryPath(wanted, error));
  if (!directory.valid()) return -1;
  struct stat info {};
  error =
      fstat(directory.get(), &info) == 0 ? DistrustOf(info, wanted) : OpenErrorText("read", wanted.path, errno, wanted.setting);
  return error.empty() ? directory.Release() : -1;
}

}  // namespace abi_1
}  // namespace persia::metrics
