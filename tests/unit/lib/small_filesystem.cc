#include "small_filesystem.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace persia::metrics::tests {

void MountSmallFilesystem(const std::string& at, const char* options) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      throw std::runtime_error("no right to make a mount namespace: run as root, or where user namespaces are allowed");
    }
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << uid << " " << uid << " 1";
    // Without it no file can be created in the mount.
    std::ofstream("/proc/self/gid_map") << gid << " " << gid << " 1";
  }
  // Nobody outside is to see the mount. In a chroot the root is no mount point, but /dev/shm is.
  const auto make_private = [](const char* path) { return mount("none", path, nullptr, MS_REC | MS_PRIVATE, nullptr) == 0; };
  if ((!make_private("/") && !make_private("/dev/shm")) || mount("tmpfs", at.c_str(), "tmpfs", 0, options) != 0) {
    throw std::runtime_error("cannot mount a tmpfs at " + at);
  }
}

void FillUp(const std::string& directory) {
  std::ofstream file(directory + "/filler", std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), 4096).flush()) {
  }
}

void FillUpTo(const std::string& directory, unsigned long left) {
  const int fd = open((directory + "/filler").c_str(), O_RDWR | O_CREAT, 0600);
  const off_t more = static_cast<off_t>(std::filesystem::space(directory).available - left);
  if (fd < 0 || posix_fallocate(fd, lseek(fd, 0, SEEK_END), more) != 0) {
    throw std::runtime_error("cannot fill up " + directory);
  }
  close(fd);
}

}  // namespace persia::metrics::tests
