#include "own.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace faults {

void Print(const char* format, ...) {
  char line[512];
  va_list values;
  va_start(values, format);
  const int size = std::vsnprintf(line, sizeof line - 1, format, values);
  va_end(values);
  if (size < 0 || static_cast<size_t>(size) >= sizeof line - 1) Fail("line");
  line[size] = '\n';
  if (write(STDOUT_FILENO, line, static_cast<size_t>(size) + 1) != size + 1) Fail("stdout");
}

void Fail(const char* what) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, what, std::strlen(what));
  _exit(99);
}

double Compute(unsigned seed) {
  std::array<double, 512> numbers;
  uint32_t state = seed;
  for (double& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = state / 4294967296.0;
  }
  std::sort(numbers.begin(), numbers.end());
  double sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    sum += numbers[i] * static_cast<double>(i % 7);
  }
  return sum;
}

void PrintState(const char* who) {
  uint64_t open = 0;
  for (int fd = 0; fd < 64; ++fd) {
    open |= static_cast<uint64_t>(::fcntl(fd, F_GETFD) >= 0) << fd;
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  uint64_t mask = 0;
  uint64_t handled = 0;
  for (int number = 1; number < 64; ++number) {
    struct sigaction action {};
    mask |= static_cast<uint64_t>(sigismember(&blocked, number) == 1) << number;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      handled |= uint64_t{1} << number;
    }
  }
  const mode_t mode = umask(022);
  umask(mode);
  char directory[256] = "";
  if (getcwd(directory, sizeof directory) == nullptr) Fail("getcwd");
  Print("%s descriptors %llx blocked %llx handled %llx umask %o in %s", who, static_cast<unsigned long long>(open),
        static_cast<unsigned long long>(mask), static_cast<unsigned long long>(handled), mode, directory);
}

double& Ledger::At(const char* key) {
  for (size_t i = 0; i < size_; ++i) {
    if (std::strcmp(entries_[i].key, key) == 0) return entries_[i].value;
  }
  if (size_ == kMost) Fail("ledger");
  entries_[size_] = {key, 0};
  return entries_[size_++].value;
}

void Ledger::Add(const char* key, double by) { At(key) += by; }

void Ledger::Set(const char* key, double value) { At(key) = value; }

void Ledger::Print(const char* who) const {
  for (size_t i = 0; i < size_; ++i) {
    faults::Print("counted %s %s %.17g", who, entries_[i].key, entries_[i].value);
  }
}

}  // namespace faults
