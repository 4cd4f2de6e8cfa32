#include "net/watched_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace persia::agent {
namespace {

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

std::string SystemError(int error) { return std::generic_category().message(error); }

}  // namespace

Error WatchedFile::Fail(const std::string& why) const { return Error{what_ + " \"" + path_ + "\": " + why}; }

Result<std::string> WatchedFile::Read() {
  struct stat now {};
  if (stat(path_.c_str(), &now) != 0) {
    const int error = errno;
    seen_.reset();
    return Fail("cannot be read: " + SystemError(error));
  }
  if (seen_ && SameFile(*seen_, now)) {
    return content_;
  }
  seen_.reset();
  return ReadAnew();
}

Result<std::string> WatchedFile::ReadAnew() {
  // Not blocking: a pipe in the file's place must not hold anybody up.
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return Fail("cannot be read: " + SystemError(errno));
  }
  const auto read_all = [&]() -> Status {
    struct stat info {};
    if (fstat(fd, &info) != 0) {
      return Fail("cannot be read: " + SystemError(errno));
    }
    if (!S_ISREG(info.st_mode)) {
      return Fail(S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
    }
    content_.clear();
    char buffer[16384];
    for (;;) {
      const ssize_t size = read(fd, buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) {
        continue;
      }
      if (size < 0) {
        return Fail("cannot be read: " + SystemError(errno));
      }
      if (size == 0) {
        break;
      }
      content_.append(buffer, static_cast<size_t>(size));
      if (content_.size() > kLargest) {
        return Fail("is larger than 1 MiB");
      }
    }
    if (content_.empty()) {
      return Fail("is empty");
    }
    seen_ = info;
    return Done{};
  };
  const Status status = read_all();
  close(fd);
  if (!status.ok()) {
    return Error{status.error()};
  }
  return content_;
}

Result<std::string> WatchedFile::ReadLine() {
  Result<std::string> text = Read();
  if (!text.ok()) {
    return text;
  }
  static constexpr char kBlanks[] = " \t\r\n";
  const std::string& content = text.value();
  const size_t begin = content.find_first_not_of(kBlanks);
  if (begin == std::string::npos) {
    return Fail("is empty");
  }
  std::string line = content.substr(begin, content.find_last_not_of(kBlanks) + 1 - begin);
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      return Fail("holds more than one line, or control characters; one line with the secret is expected");
    }
  }
  return line;
}

}  // namespace persia::agent
