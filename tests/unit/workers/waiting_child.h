// A real process whose values the agent can read.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>

#include "kernel/proc_reader.h"
#include "workers/worker_metrics.h"

namespace persia::agent {

inline const Identity kTrainer{"dlrm", {{"instance", "rep_0"}, {"role", "trainer"}}};

// A real process that has used some processor time and some memory, has some descriptors open, and waits to be killed.
class Child {
 public:
  Child() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      for (int i = 0; i < kDescriptors; ++i) {
        open("/dev/null", O_RDONLY);
      }
      static volatile char memory[kTouchedBytes];
      for (volatile char& byte : memory) {
        byte = 'x';
      }
      const clock_t burnt = 3 * CLOCKS_PER_SEC / 100;
      for (const clock_t began = clock(); clock() - began < burnt;) {
      }
      [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
      for (;;) {
        pause();
      }
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    while (ProcReader().Stat(std::to_string(pid_)).value().state != 'S') std::this_thread::yield();
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() { End(SIGKILL); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Gives the status that waitpid gives.
  int End(int signal) {
    int status = 0;
    if (pid_ > 0) {
      kill(pid_, signal);
      waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    return status;
  }

  // As its segment would have it.
  [[nodiscard]] Process Record(uint32_t ordinal = 0) const {
    struct stat info {};
    EXPECT_EQ(stat("/proc/self/ns/pid", &info), 0);
    Process process;
    process.identity = kTrainer;
    process.ordinal = ordinal;
    process.alive = true;
    process.id.pid = static_cast<uint32_t>(pid_);
    process.id.pid_namespace = info.st_ino;
    process.id.start_ticks = ProcReader().Stat(std::to_string(pid_)).value().start_ticks;
    process.run_id = "run-1";
    process.restart_count = 2;
    process.library_version = "0.1.0";
    process.last_change = std::chrono::system_clock::time_point(std::chrono::milliseconds(1700000000250));
    return process;
  }

  static constexpr int kDescriptors = 7;
  static constexpr size_t kTouchedBytes = 4 << 20;

 private:
  pid_t pid_ = -1;
};

}  // namespace persia::agent
