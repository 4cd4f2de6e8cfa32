// The main function of the unit tests. It ends a test that exceeds its time limit, and prints its threads by name, with the
// stacks of those that do not block signals.
//
// PERSIA_TEST_SECONDS replaces the limit. addr2line -Cfe PROGRAM ADDRESS gives a frame's line. PERSIA_TEST_SEED is the seed of
// random tests (test_seed.h), and of the tests' order under --gtest_shuffle.
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "sanitizers.h"
#include "test_seed.h"

#if PERSIA_TEST_TSAN
// A child that is forked from several threads may start threads of its own, as the library's callbacks do.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

#if PERSIA_TEST_ASAN || PERSIA_TEST_TSAN
constexpr double kSeconds = 300;
#else
constexpr double kSeconds = 180;
#endif

namespace {

const int kTimeOver = SIGRTMAX;        // to the main thread
const int kPrintStack = SIGRTMAX - 1;  // to each thread in turn
volatile sig_atomic_t stack_printed = 0;
char message[512];

void Print(std::string_view text) { [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size()); }

void OnPrintStack(int) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  stack_printed = 1;
}

// The process ends here, so that what a signal handler must not call does no more harm than the hang.
void OnTimeOver(int) {
  Print(message);
  const pid_t self = getpid();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    std::string thread_name;
    std::getline(std::ifstream(entry.path() / "comm"), thread_name);
    Print("\nthread " + name + ", " + thread_name + ":\n");
    if (thread == self) {
      OnPrintStack(0);
      continue;
    }
    stack_printed = 0;
    syscall(SYS_tgkill, self, thread, kPrintStack);
    for (int i = 0; i < 50 && stack_printed == 0; ++i) {
      constexpr timespec kStep = {0, 1'000'000};
      nanosleep(&kStep, nullptr);
    }
  }
  std::abort();
}

class TimeLimit : public testing::EmptyTestEventListener {
 public:
  explicit TimeLimit(double seconds) : seconds_(seconds) {
    // No glibc function of the first use may be reached in the handler.
    void* frame = nullptr;
    backtrace(&frame, 1);
    std::signal(kTimeOver, OnTimeOver);
    std::signal(kPrintStack, OnPrintStack);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTimeOver;
    event._sigev_un._tid = getpid();
    // A timer stays with this process: a forked child and another program do not get it.
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) std::abort();
  }

  void OnTestStart(const testing::TestInfo& test) override {
    snprintf(message, sizeof message, "\n%s.%s has not ended after %g s.", test.test_suite_name(), test.name(), seconds_);
    Set(seconds_);
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { Set(0); }

 private:
  void Set(double seconds) {
    itimerspec time{};
    time.it_value.tv_sec = static_cast<time_t>(seconds);
    time.it_value.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.it_value.tv_sec)) * 1e9);
    timer_settime(timer_, 0, &time, nullptr);
  }

  const double seconds_;
  timer_t timer_{};
};

// Prints how to repeat a failure that a seed may have drawn.
class Seeds : public testing::EmptyTestEventListener {
 public:
  explicit Seeds(const char* program) : program_(program) {}

  void OnTestStart(const testing::TestInfo& /*test*/) override { persia::test_is_random = false; }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed() || !persia::test_is_random) return;
    printf("again: PERSIA_TEST_SEED=%llu %s --gtest_filter=%s.%s\n", Seed(), program_, test.test_suite_name(), test.name());
  }
  void OnTestProgramEnd(const testing::UnitTest& tests) override {
    if (tests.Failed() && GTEST_FLAG_GET(shuffle)) {
      printf("the same order again: PERSIA_TEST_SEED=%llu %s --gtest_shuffle\n", Seed(), program_);
    }
  }

 private:
  static unsigned long long Seed() { return persia::TestSeedOfTheEnvironment(); }

  const char* const program_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* const program = argv[0];
  testing::InitGoogleMock(&argc, argv);
  constexpr int kOrders = 99'999;  // GoogleTest's seeds are 1 to this
  if (GTEST_FLAG_GET(random_seed) == 0) {
    GTEST_FLAG_SET(random_seed, static_cast<int>((persia::TestSeedOfTheEnvironment() + kOrders - 1) % kOrders) + 1);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new Seeds(program));
  const char* given = std::getenv("PERSIA_TEST_SECONDS");
  testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit(given != nullptr ? std::atof(given) : kSeconds));
  return RUN_ALL_TESTS();
}
