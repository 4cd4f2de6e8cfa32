// worker_metrics_test.cc has what the reader finds of real processes.
#include "files/proc_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/owned_fd.h"
#include "file_tree.h"

namespace persia::agent {
namespace {

TEST(ProcReader, OpenFilesOfThisProcessAreCountedWithoutTheReadersOwn) {
  ProcReader proc;
  const auto before = proc.OpenFds("self");
  const OwnedFd more(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(before);
  EXPECT_EQ(proc.OpenFds("self"), *before + 1);
}

// Elsewhere than in /proc, the size of a directory is not its number of entries.
TEST(ProcReader, OpenFilesAreCountedWhereSizesMeanNothing) {
  FileTree tree;
  for (const char* name : {"7/fd/0", "7/fd/1", "7/fd/12"}) tree.Write(name, "");
  EXPECT_EQ(ProcReader(tree.path()).OpenFds("7"), 3U);
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
