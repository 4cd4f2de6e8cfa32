#include "inlet/named_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace persia::agent {
namespace {

constexpr size_t kReadBytes = 1 << 16;
// What the kernel may keep for us while we are busy; a user may have less.
constexpr int kPipeBytes = 1 << 20;
// Many times what a pipe holds.
constexpr size_t kMostDrained = 64 << 20;

Error Refuse(const std::string& path, const std::string& why) { return Error{"named pipe \"" + path + "\": " + why}; }

}  // namespace

Result<std::unique_ptr<NamedPipe>> NamedPipe::Open(Options options) {
  const std::string path = options.path;
  const bool made = mkfifo(path.c_str(), 0622) == 0;
  if (!made && errno != EEXIST) {
    return Refuse(path, std::string("cannot be made: ") + std::strerror(errno));
  }
  if (made) {
    chmod(path.c_str(), 0622);  // whatever the umask
  }
  // For writing too: a pipe that is only read ends with its last writer, and would say so for ever.
  const int fd = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    return Refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) {
    close(fd);
    return Refuse(path, "is there, and is not a named pipe; remove it, or name another place");
  }
  static_cast<void>(fcntl(fd, F_SETPIPE_SZ, kPipeBytes));
  return std::unique_ptr<NamedPipe>(new NamedPipe(std::move(options), fd, made));
}

NamedPipe::NamedPipe(Options options, int fd, bool made) : options_(std::move(options)), fd_(fd), made_(made) {}

NamedPipe::~NamedPipe() {
  if (made_) {
    struct stat ours {};
    struct stat there {};
    if (fstat(fd_, &ours) == 0 && lstat(options_.path.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
        ours.st_ino == there.st_ino) {
      unlink(options_.path.c_str());
    }
  }
  close(fd_);
}

bool NamedPipe::Read(const OnLine& on_line) {
  if (buffer_.size() < used_ + kReadBytes + options_.padding) {
    buffer_.resize(used_ + kReadBytes + options_.padding);
  }
  ssize_t got = 0;
  do {
    got = read(fd_, buffer_.data() + used_, kReadBytes);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    return false;
  }
  const char* begin = buffer_.data();
  const char* const end = begin + used_ + got;
  const char* search = begin + used_;
  while (const auto* newline = static_cast<const char*>(std::memchr(search, '\n', static_cast<size_t>(end - search)))) {
    const auto size = static_cast<size_t>(newline - begin);
    if (given_up_) {
      given_up_ = false;
    } else if (size > options_.max_line_bytes) {
      on_line({});
    } else if (size > 0) {
      on_line({begin, size});
    }
    begin = search = newline + 1;
  }
  used_ = static_cast<size_t>(end - begin);
  if (given_up_ || used_ > options_.max_line_bytes) {
    if (!given_up_) {
      on_line({});
    }
    given_up_ = true;
    used_ = 0;
  }
  std::memmove(buffer_.data(), begin, used_);
  return true;
}

void NamedPipe::Drain(const OnLine& on_line) {
  // A writer that does not stop is not waited for.
  for (size_t left = kMostDrained / kReadBytes; left > 0 && Read(on_line); --left) {
  }
  if (used_ > 0) {
    on_line({buffer_.data(), used_});
    used_ = 0;
  }
}

}  // namespace persia::agent
