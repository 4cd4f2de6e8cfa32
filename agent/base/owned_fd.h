// Owns a file descriptor and closes it.
//
// Thread safety: none.
#pragma once

#include <unistd.h>

#include <utility>

namespace persia::agent {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.Release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~OwnedFd() { Reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (valid()) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace persia::agent
