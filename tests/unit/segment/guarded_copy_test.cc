#include "segment/guarded_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

constexpr size_t kPage = 4096;

// A mapped file of three pages, which the test truncates.
class GuardedCopyTest : public ::testing::Test {
 protected:
  GuardedCopyTest() : fd_(memfd_create("guarded", MFD_CLOEXEC)) {
    Resize(3);
    base_ = static_cast<std::byte*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    for (size_t i = 0; i < 3 * kPage / 8; ++i) {
      reinterpret_cast<uint64_t*>(base_)[i] = i;
    }
  }
  ~GuardedCopyTest() override {
    munmap(base_, 3 * kPage);
    close(fd_);
  }
  void Resize(size_t pages) const { ASSERT_EQ(ftruncate(fd_, static_cast<off_t>(pages * kPage)), 0); }

  int fd_;
  std::byte* base_;
};

TEST_F(GuardedCopyTest, CopiesMappedWords) {
  std::vector<uint64_t> words(3 * kPage / 8);
  ASSERT_TRUE(GuardedCopy(base_, words));
  EXPECT_EQ(std::memcmp(words.data(), base_, 3 * kPage), 0);
  uint64_t word = 0;
  ASSERT_TRUE(GuardedCopyInOrder(base_ + 80, std::span(&word, 1)));
  EXPECT_EQ(word, 10U);
}

TEST_F(GuardedCopyTest, FailsOnlyWhileTheFileIsTruncated) {
  std::vector<uint64_t> words(2 * kPage / 8);
  Resize(1);
  EXPECT_FALSE(GuardedCopy(base_, words));  // the file ends before the second page
  EXPECT_FALSE(GuardedCopy(base_ + kPage, words));
  uint64_t word = 0;
  EXPECT_FALSE(GuardedCopyInOrder(base_ + kPage, std::span(&word, 1)));
  EXPECT_TRUE(GuardedCopy(base_, std::span(words).first(kPage / 8)));
  Resize(3);
  EXPECT_TRUE(GuardedCopy(base_, words));
  EXPECT_TRUE(GuardedCopyInOrder(base_ + kPage, std::span(&word, 1)));
}

TEST_F(GuardedCopyTest, ThreadsFaultIndependently) {
  Resize(1);
  std::array<int, 4> failures{};
  std::vector<std::thread> threads;
  for (int& failed : failures) {
    threads.emplace_back([&] {
      std::vector<uint64_t> words(kPage / 8);
      for (int i = 0; i < 200; ++i) {
        failed += GuardedCopy(base_ + kPage, words) ? 0 : 1;
        failed += GuardedCopy(base_, words) ? 0 : 1000;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, (std::array<int, 4>{200, 200, 200, 200}));
}

TEST_F(GuardedCopyTest, FailsAlsoInAThreadThatInheritedTheSignalAsBlocked) {
  Resize(1);
  const pid_t pid = fork();
  if (pid == 0) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    bool copied = true;
    std::thread([&] {
      uint64_t word = 0;
      copied = GuardedCopy(base_ + kPage, std::span(&word, 1));
    }).join();
    _exit(copied ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Whether a child process that makes a guarded copy and then runs `body` exits normally.
bool Survives(void (*body)(std::byte*), std::byte* memory) {
  const pid_t pid = fork();
  if (pid == 0) {
    close(STDERR_FILENO);  // hides a sanitizer's report
    std::vector<uint64_t> words(1);
    const bool copied = GuardedCopy(memory, words);
    body(memory);
    _exit(copied ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(GuardedCopyTest, ABusErrorElsewhereStillEndsTheProcess) {
  Resize(1);
  EXPECT_TRUE(Survives([](std::byte*) {}, base_));
  EXPECT_FALSE(Survives([](std::byte* memory) { *reinterpret_cast<volatile uint64_t*>(memory + kPage) = 1; }, base_));
  EXPECT_FALSE(Survives([](std::byte*) { raise(SIGBUS); }, base_));
}

}  // namespace
}  // namespace persia::agent
