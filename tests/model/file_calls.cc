#include "file_calls.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdarg>
#include <ctime>
#include <utility>

namespace persia::agent::model {
namespace {

constinit thread_local const std::function<bool(const FileCall& call)>* before_call = nullptr;

bool Allowed(const FileCall& call = {}) {
  if (before_call == nullptr || (*before_call)(call)) return true;
  errno = EIO;
  return false;
}

}  // namespace

FileCalls::FileCalls(std::function<bool(const FileCall& call)> before) : before_(std::move(before)) { before_call = &before_; }

FileCalls::~FileCalls() { before_call = nullptr; }

// The caller's goes to __wrap_NAME, and from there to the real one.
extern "C" {
int __real_openat(int directory, const char* name, int flags, ...);
int __real_fcntl(int fd, int command, ...);
ssize_t __real_read(int fd, void* to, size_t size);
ssize_t __real_pread(int fd, void* to, size_t size, off_t at);
ssize_t __real_write(int fd, const void* from, size_t size);
ssize_t __real_pwrite(int fd, const void* from, size_t size, off_t at);
int __real_ftruncate(int fd, off_t size);
int __real_renameat(int from_directory, const char* from, int to_directory, const char* to);
int __real_unlinkat(int directory, const char* name, int flags);
int __real_nanosleep(const timespec* time, timespec* left);

int __wrap_openat(int directory, const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool of_directory = (flags & (O_PATH | O_DIRECTORY)) != 0;
  return of_directory || Allowed() ? __real_openat(directory, name, flags, mode) : -1;
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK;
  return !locks || Allowed() ? __real_fcntl(fd, command, argument) : -1;
}

ssize_t __wrap_read(int fd, void* to, size_t size) { return Allowed() ? __real_read(fd, to, size) : -1; }

ssize_t __wrap_pread(int fd, void* to, size_t size, off_t at) { return Allowed() ? __real_pread(fd, to, size, at) : -1; }

ssize_t __wrap_write(int fd, const void* from, size_t size) { return Allowed() ? __real_write(fd, from, size) : -1; }

ssize_t __wrap_pwrite(int fd, const void* from, size_t size, off_t at) {
  return Allowed() ? __real_pwrite(fd, from, size, at) : -1;
}

int __wrap_ftruncate(int fd, off_t size) { return Allowed({.may_throw = false}) ? __real_ftruncate(fd, size) : -1; }

int __wrap_renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return Allowed({.kind = FileCall::Kind::kRename, .name = to, .may_throw = false})
             ? __real_renameat(from_directory, from, to_directory, to)
             : -1;
}

int __wrap_unlinkat(int directory, const char* name, int flags) {
  return Allowed({.may_throw = false}) ? __real_unlinkat(directory, name, flags) : -1;
}

int __wrap_nanosleep(const timespec* time, timespec* left) {
  if (before_call == nullptr) return __real_nanosleep(time, left);
  (*before_call)({.kind = FileCall::Kind::kWait});
  return 0;
}
}

}  // namespace persia::agent::model
