// worker_metrics_test.cc has what the reader finds of real processes.
#include "files/proc_reader.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

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
