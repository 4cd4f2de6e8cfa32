#include "segment_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "descriptor.h"
#include "signal_consumed.h"
#include "trusted_directory.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

std::string ErrorText(std::string_view what, int error) { return std::string(what) + ": " + std::strerror(error); }

// The error's text: `what` failed with `error`, and what to do about it.
std::string OpenError(std::string_view what, int error) {
  const bool limit = error == EMFILE || error == ENFILE;
  return ErrorText(what, error) +
         (limit ? "; raise the limit on open files" : "; set PERSIA_METRICS_DIR to a directory of your own");
}

// The job uses the filesystem too (shared-memory data loaders). The reserve for it: a quarter of the space that is free when
// the segment is made, at most this.
constexpr uint64_t kMaxReserve = 64ULL << 20;

// Returns an error number. Above the limit on file sizes, that is EFBIG.
int Allocate(int fd, uint64_t offset, uint64_t bytes) {
  const SignalConsumed consumed(SIGXFSZ);
  int error;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

}  // namespace

bool SegmentFile::Create(int directory_fd, const std::string& path, uint64_t max_bytes, std::string* error) {
  struct stat directory {};
  if (fstat(directory_fd, &directory) != 0) {
    *error = ErrorText("cannot read the attributes of the directory " + path, errno);
    return false;
  }
  const bool group = IsShared(directory.st_mode);
  const mode_t mode = group ? 0640 : 0600;
  directory_ = path;
  {
    const StandardDescriptorsTaken taken;
    unnamed_fd_ = openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  }
  if (unnamed_fd_ < 0) {
    *error = errno == EOPNOTSUPP || errno == EISDIR
                 ? "the filesystem of " + path +
                       " does not support O_TMPFILE; set PERSIA_METRICS_DIR to a directory on one that does, such as a tmpfs"
                 : OpenError("cannot make a file in " + path, errno);
    return false;
  }
  const auto fail = [&](const char* what, const char* advice = "") {
    *error = ErrorText(std::string(what) + " in " + path, errno) + advice;
    Discard();
    return false;
  };
  struct stat file {};
  struct statvfs filesystem {};
  // Regardless of the umask.
  const bool has_mode = fchmod(unnamed_fd_, mode) == 0 || !group;
  if (!has_mode || fstat(unnamed_fd_, &file) != 0 || fstatvfs(unnamed_fd_, &filesystem) != 0)
    return fail("cannot set up a file");
  // Not a process-owned record lock: closing any descriptor of the file would release it, and the process would look dead.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(unnamed_fd_, F_OFD_SETLK, &lock) != 0)
    return fail("cannot lock a file", "; set PERSIA_METRICS_DIR to a local filesystem");
  void* memory = mmap(nullptr, max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, unnamed_fd_, 0);
  if (memory == MAP_FAILED)
    return fail("cannot map a file", "; a smaller PERSIA_METRICS_SEGMENT_BYTES needs less address space");
  // A forked child must not write to its parent's segment, nor hold its lock.
  madvise(memory, max_bytes, MADV_DONTFORK);
  base_ = static_cast<std::byte*>(memory);
  max_bytes_ = max_bytes;
  device_ = file.st_dev;
  inode_ = file.st_ino;
  reserve_ = 0;  // until it has its name
  available_at_birth_ = uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
  return true;
}

bool SegmentFile::Link(const std::string& file_name, std::string* error) {
  std::string target = directory_ + "/" + file_name;
  const std::string source = "/proc/self/fd/" + std::to_string(unnamed_fd_);
  // The first way needs no /proc, but a capability, or Linux 6.10.
  if (linkat(unnamed_fd_, "", AT_FDCWD, target.c_str(), AT_EMPTY_PATH) != 0 &&
      linkat(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    *error = ErrorText("cannot name the file " + target, errno) + "; is /proc mounted?";
    Discard();
    return false;
  }
  path_ = std::move(target);
  reserve_ = std::min(available_at_birth_ / 4, kMaxReserve);
  close(unnamed_fd_);
  unnamed_fd_ = -1;
  return true;
}

int SegmentFile::Reopen() const {
  const StandardDescriptorsTaken taken;
  const int fd = open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat file {};
  if (fd >= 0 && (fstat(fd, &file) != 0 || file.st_dev != device_ || file.st_ino != inode_)) {
    close(fd);
    errno = ENOENT;
    return -1;
  }
  return fd;
}

std::optional<segment::Drop> SegmentFile::Grow(uint64_t offset, uint64_t bytes) {
  using segment::Drop;
  const Descriptor reopened(unnamed_fd_ >= 0 ? -1 : Reopen());
  const int fd = unnamed_fd_ >= 0 ? unnamed_fd_ : reopened.get();
  if (fd < 0) return errno == EMFILE || errno == ENFILE ? Drop::kDescriptorLimit : Drop::kFileInaccessible;
  struct statvfs filesystem {};
  if (fstatvfs(fd, &filesystem) != 0) return Drop::kFileInaccessible;
  const uint64_t available = uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
  if (available < reserve_) return Drop::kFilesystemFull;
  switch (Allocate(fd, offset, bytes)) {
    case 0:
      return std::nullopt;
    case EFBIG:
      return Drop::kFileSizeLimit;
    case ENOMEM:
      return Drop::kOutOfMemory;
    case ENOSPC:
    case EDQUOT:
      return Drop::kFilesystemFull;
    default:
      return Drop::kFileInaccessible;
  }
}

void SegmentFile::Discard() {
  if (base_ != nullptr) munmap(base_, max_bytes_);
  ForgetAfterFork();
}

void SegmentFile::ForgetAfterFork() {
  if (unnamed_fd_ >= 0) close(unnamed_fd_);
  base_ = nullptr;
  path_.clear();
  unnamed_fd_ = -1;
}

}  // namespace abi_1
}  // namespace persia::metrics
