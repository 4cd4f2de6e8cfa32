#include "workers/stopped_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "files/proc_reader.h"

namespace persia::agent {
namespace {

TEST(StoppedProcesses, AProcessThatASignalHasStopped) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) pause();
  }
  ProcReader proc;
  const auto stat = proc.Stat(std::to_string(child));
  WorkerProcess process;
  process.alive = true;
  process.pid = static_cast<uint32_t>(child);
  process.pid_namespace = proc.PidNamespace("self").value_or(0);
  process.start_ticks = stat ? stat->start_ticks : 0;
  StoppedProcesses stopped;
  EXPECT_FALSE(stopped.Contains(process));
  kill(child, SIGSTOP);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(stopped.Contains(process));
  WorkerProcess other = process;
  other.start_ticks += 1;
  EXPECT_FALSE(stopped.Contains(other)) << "its pid belongs to another process now";
  other = process;
  other.pid_namespace += 1;
  EXPECT_FALSE(stopped.Contains(other)) << "its pid is of another namespace";
  other = process;
  other.alive = false;
  EXPECT_FALSE(stopped.Contains(other));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_FALSE(stopped.Contains(process));
}

}  // namespace
}  // namespace persia::agent
