// worker_metrics_test.cc has what the reader finds of real processes.
#include "kernel/proc_reader.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "file_tree.h"

namespace persia::agent {
namespace {

// Elsewhere than in /proc, the size of a directory is not its number of entries.
TEST(ProcReader, OpenFilesAreCountedWhereSizesMeanNothing) {
  FileTree tree;
  for (const std::string process : {"7", "self"}) {
    for (const char* name : {"/fd/0", "/fd/1", "/fd/12"}) tree.Write(process + name, "");
  }
  ProcReader proc(tree.path());
  EXPECT_EQ(proc.OpenFds("7"), 3U);
  EXPECT_EQ(proc.OpenFds("self"), 2U) << "without the one by which it reads them";
}

// As a program whose main thread calls pthread_exit.
TEST(ProcReader, AProcessHasItsMemoryAndFilesAfterItsMainThreadHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);
  }
  const std::string who = std::to_string(child);
  ProcReader proc;
  while (proc.Stat(who)->state != 'Z') sched_yield();
  EXPECT_GT(proc.Memory(who)->resident_bytes, 0);
  EXPECT_GT(proc.OpenFds(who), 0U);
  kill(child, SIGKILL);
  while (proc.Stat(who)->threads > 1) sched_yield();
  EXPECT_EQ(proc.Memory(who)->resident_bytes, 0) << "it is a zombie";
  waitpid(child, nullptr, 0);
}

TEST(ProcReader, AProcessThatASignalHasStopped) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) pause();
  }
  ProcReader proc;
  struct {
    pid_t pid;
    uint64_t pid_namespace, start_ticks;
  } process{child, proc.PidNamespace("self").value(), proc.Stat(std::to_string(child)).value().start_ticks};
  EXPECT_FALSE(proc.StatOf(process)->IsStopped());
  kill(child, SIGSTOP);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(proc.StatOf(process)->IsStopped());
  auto other = process;
  other.start_ticks += 1;
  EXPECT_FALSE(proc.StatOf(other)) << "its pid belongs to another process now";
  other = process;
  other.pid_namespace += 1;
  EXPECT_FALSE(proc.StatOf(other)) << "its pid is of another namespace";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(proc.StatOf(process));
}

TEST(ProcReader, LimitsAreTheSoftOnes) {
  FileTree tree;
  tree.Write("7/limits",
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max cpu time              unlimited            unlimited            seconds   \n"
             "Max file size             4096                 unlimited            bytes     \n"
             "Max open files            64                   128                  files     \n"
             "Max address space         1000000              unlimited            bytes     \n");
  const ProcLimits limits = ProcReader(tree.path()).Limits("7");
  EXPECT_FALSE(limits.cpu_seconds) << "unlimited";
  EXPECT_EQ(limits.file_bytes, 4096U);
  EXPECT_EQ(limits.open_files, 64U);
  EXPECT_EQ(limits.address_space, 1000000U);
}

TEST(ProcReader, NothingIsKnownOfAProcessThatIsGone) {
  ProcReader proc;
  const char* const kGone = "999999999";  // above the largest pid
  EXPECT_EQ(proc.OpenFds(kGone), std::nullopt);
  EXPECT_FALSE(proc.Stat(kGone));
  EXPECT_FALSE(proc.Io(kGone));
  EXPECT_FALSE(proc.Limits(kGone).open_files);
  EXPECT_FALSE(proc.Catches(kGone, SIGTERM));
  EXPECT_FALSE(proc.Memory(kGone));
  EXPECT_EQ(proc.RunQueueWait(kGone), std::nullopt);
  EXPECT_EQ(proc.PidNamespace(kGone), std::nullopt);
}

}  // namespace
}  // namespace persia::agent
