#include "base/owned_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace persia::agent {
namespace {

OwnedFd Open() { return OwnedFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(OwnedFd, ClosesItsDescriptorAtTheEnd) {
  int number = -1;
  {
    const OwnedFd fd = Open();
    number = fd.get();
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(OwnedFd, ClosesTheFormerDescriptorWhenItGetsAnother) {
  OwnedFd fd = Open();
  const int first = fd.get();
  OwnedFd other = Open();
  const int second = other.get();
  fd = std::move(other);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_TRUE(IsOpen(second));
  fd.Reset();
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(IsOpen(second));
}

TEST(OwnedFd, LeavesAReleasedDescriptorOpen) {
  int number = -1;
  {
    OwnedFd fd = Open();
    number = fd.Release();
    EXPECT_FALSE(fd.valid());
  }
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

}  // namespace
}  // namespace persia::agent
