#include "segment_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace persia::metrics {
namespace {

std::string Because(std::string_view what, int error) { return std::string(what) + ": " + std::strerror(error); }

int FallocateRetrying(int fd, uint64_t offset, uint64_t bytes) {
  int error;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

bool WriteAll(int fd, const std::byte* data, uint64_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t n = pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    data += n;
    bytes -= static_cast<uint64_t>(n);
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

}  // namespace

int OpenJobDirectory(const std::string& path, std::string* error) {
  const auto open_it = [&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); };
  int fd = open_it();
  if (fd < 0 && errno == ENOENT) {
    // The per-user parent of the default, or the one directory that was asked for; no whole trees out of a typing error.
    const size_t slash = path.find_last_of('/');
    if (slash != std::string::npos && slash > 0) {
      mkdir(path.substr(0, slash).c_str(), 0700);
    }
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      *error = Because("cannot make the directory " + path, errno) + "; create it, or set PERSIA_METRICS_DIR to another";
      return -1;
    }
    fd = open_it();
  }
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    *error = Because("cannot open the directory " + path, errno) + "; set PERSIA_METRICS_DIR to a directory of your own";
    if (fd >= 0) {
      close(fd);
    }
    return -1;
  }
  const bool shared_by_group = (info.st_mode & 02770) == 02770 && (info.st_mode & 0002) == 0;
  const bool ours = info.st_uid == geteuid() && (info.st_mode & 0022) == 0;
  if (!ours && !shared_by_group) {
    char mode[8];
    snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
    *error = "the directory " + path + " (owner " + std::to_string(info.st_uid) + ", mode " + mode +
             ") is neither ours alone (owner " + std::to_string(geteuid()) +
             ", 0700) nor shared with a group (2770); change that, or set PERSIA_METRICS_DIR to another";
    close(fd);
    return -1;
  }
  return fd;
}

bool SegmentMemory::Reserve(uint64_t max_bytes) {
  void* memory = mmap(nullptr, max_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  // A forked child must neither write into its parent's segment nor keep its lock.
  madvise(memory, max_bytes, MADV_DONTFORK);
  base_ = static_cast<std::byte*>(memory);
  max_bytes_ = max_bytes;
  return true;
}

bool SegmentMemory::MoveToFile(int directory_fd, const std::string& path, const std::vector<Extent>& in_use,
                               std::string* error) {
  struct stat directory {};
  if (fstat(directory_fd, &directory) != 0) {
    *error = Because("cannot look at the directory " + path, errno);
    return false;
  }
  const bool group = (directory.st_mode & 02070) == 02070;
  const int fd = openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, group ? 0660 : 0600);
  if (fd < 0) {
    *error = errno == EOPNOTSUPP || errno == EISDIR
                 ? "the filesystem of " + path + " has no O_TMPFILE; set PERSIA_METRICS_DIR to one that has, such as a tmpfs"
                 : Because("cannot make a file in " + path, errno) + "; set PERSIA_METRICS_DIR to a directory of your own";
    return false;
  }
  const auto fail = [&](const std::string& why) {
    *error = why;
    close(fd);
    return false;
  };
  struct stat file {};
  if (fstat(fd, &file) != 0 || (group && fchmod(fd, 0660) != 0)) {
    return fail(Because("cannot set up a file in " + path, errno));
  }
  // Not a classic record lock: the process would lose that by closing the file anywhere, and look dead.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    return fail(Because("cannot lock a file in " + path, errno) + "; set PERSIA_METRICS_DIR to a local filesystem");
  }
  for (const Extent& extent : in_use) {
    if (const int why = FallocateRetrying(fd, extent.offset, extent.bytes); why != 0) {
      return fail(Because("no room for metrics in " + path, why) +
                  "; free some, or set PERSIA_METRICS_DIR to another directory");
    }
    if (!WriteAll(fd, base_ + extent.offset, extent.bytes, extent.offset)) {
      return fail(Because("cannot write a file in " + path, errno));
    }
  }
  if (mmap(base_, max_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    return fail(Because("cannot map a file in " + path, errno));
  }
  madvise(base_, max_bytes_, MADV_DONTFORK);
  former_path_ = this->path();
  directory_ = path;
  file_name_.clear();
  device_ = file.st_dev;
  inode_ = file.st_ino;
  unlinked_fd_ = fd;
  return true;
}

bool SegmentMemory::Link(const std::string& file_name, std::string* error) {
  const std::string target = directory_ + "/" + file_name;
  const std::string source = "/proc/self/fd/" + std::to_string(unlinked_fd_);
  const bool linked = linkat(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) == 0;
  if (linked) {
    file_name_ = file_name;
  } else {
    *error = Because("cannot name the file " + target, errno) + "; is /proc mounted?";
  }
  close(unlinked_fd_);
  unlinked_fd_ = -1;
  if (!former_path_.empty()) {
    unlink(former_path_.c_str());
    former_path_.clear();
  }
  return linked;
}

int SegmentMemory::Reopen() const {
  const int fd = open(path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat file {};
  if (fd >= 0 && (fstat(fd, &file) != 0 || file.st_dev != device_ || file.st_ino != inode_)) {
    close(fd);
    return -1;
  }
  return fd;
}

Growth SegmentMemory::Grow(uint64_t offset, uint64_t bytes) {
  if (inode_ == 0) {
    return Growth::kGrown;  // private memory: the kernel allocates it on touch
  }
  const int fd = Reopen();
  if (fd < 0) {
    return Growth::kFilesystemFull;
  }
  // The filesystem is the training job's too (shared-memory data loaders): the last quarter is left to it.
  struct statvfs filesystem {};
  const bool roomy = fstatvfs(fd, &filesystem) == 0 && filesystem.f_bavail >= filesystem.f_blocks / 4;
  const bool grown = roomy && FallocateRetrying(fd, offset, bytes) == 0;
  close(fd);
  return grown ? Growth::kGrown : Growth::kFilesystemFull;
}

void SegmentMemory::ForgetAfterFork() {
  if (unlinked_fd_ >= 0) {
    close(unlinked_fd_);
  }
  base_ = nullptr;
  max_bytes_ = 0;
  directory_.clear();
  file_name_.clear();
  former_path_.clear();
  device_ = 0;
  inode_ = 0;
  unlinked_fd_ = -1;
}

}  // namespace persia::metrics
