// worker_metrics_test.cc has what the reader finds of real processes.
#include "files/proc_reader.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

TEST(ProcReader, NothingIsKnownOfAProcessThatIsGone) {
  ProcReader proc;
  const char* const kGone = "999999999";  // above the largest pid
  EXPECT_EQ(proc.OpenFds(kGone), std::nullopt);
  EXPECT_FALSE(proc.Stat(kGone));
  EXPECT_FALSE(proc.Io(kGone));
  EXPECT_FALSE(proc.Memory(kGone));
  EXPECT_EQ(proc.RunQueueWait(kGone), std::nullopt);
  EXPECT_EQ(proc.PidNamespace(kGone), std::nullopt);
}

}  // namespace
}  // namespace persia::agent
