// Owns a file descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace persia::metrics {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// While it lives, closed standard descriptors are in use, but not for writing. So a file that is opened meanwhile does not get
// the number of one: what the program prints there would go into the file.
class StandardDescriptorsTaken {
 public:
  StandardDescriptorsTaken() {
    for (int& fd : taken_) {
      fd = open("/", O_PATH | O_CLOEXEC);
      if (fd > STDERR_FILENO) close(std::exchange(fd, -1));
      if (fd < 0) break;
    }
  }
  ~StandardDescriptorsTaken() {
    for (const int fd : taken_)
      if (fd >= 0) close(fd);
  }
  StandardDescriptorsTaken(const StandardDescriptorsTaken&) = delete;
  StandardDescriptorsTaken& operator=(const StandardDescriptorsTaken&) = delete;

 private:
  int taken_[3] = {-1, -1, -1};
};

}  // namespace persia::metrics
