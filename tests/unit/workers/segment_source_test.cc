// Which files of a job's directory count, and for how long.
#include "workers/segment_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "workers/job_directory_test.h"

namespace persia::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class SegmentSourceTest : public JobDirectoryTest {
 protected:
  static SegmentBuilder Counting(uint64_t value, const std::string& run_id = "") {
    SegmentBuilder segment;
    segment.Identity({.run_id = run_id, .role = "worker"});
    segment.Counter("a", "c", {}, value);
    return segment;
  }
  std::string Counted() {
    const auto flat = CollectFlat();
    return flat.contains("a_c") ? flat.at("a_c") : "";
  }
  std::vector<std::string> Refused() {
    std::vector<std::string> out;
    for (const RefusedSegment& refused : source().stats().refused) {
      out.push_back(std::filesystem::path(refused.path).filename().string() + " " + refused.problem.reason);
    }
    return out;
  }
};

TEST_F(SegmentSourceTest, ADirectoryThatIsNotThereYetIsNoError) {
  std::filesystem::remove(directory());
  EXPECT_EQ(Counted(), "");
  EXPECT_THAT(Diagnosed(), IsEmpty());
  std::filesystem::create_directory(directory());
  Put("a.seg", Counting(1));
  EXPECT_EQ(Counted(), "1");
}

TEST_F(SegmentSourceTest, ADirectoryThatCannotBeReadIsReportedOnce) {
  std::filesystem::remove(directory());
  std::ofstream(directory()) << "a file in its place";
  EXPECT_EQ(Counted(), "");
  EXPECT_EQ(Counted(), "");
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("directory: cannot read the directory " + directory() + ": Not a directory")));
}

TEST_F(SegmentSourceTest, OnlySegFilesAreLookedAt) {
  Put("a.seg", Counting(1));
  Put("b.seg.tmp", Counting(10));
  PutText("agent.conf", "enabled=1\n");
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(SegmentSourceTest, AnEndedProcessStillCounts) {
  SegmentBuilder segment = Counting(1);
  Put("a.seg", segment);
  {
    const WriterLock lock(PathOf("a.seg"));
    EXPECT_EQ(Counted(), "1");
    EXPECT_EQ(source().stats().live, 1U);
    segment.Set(segment::kCellsPerChunk, 2);
    Put("a.seg", segment);
  }
  EXPECT_EQ(Counted(), "2");  // its last counts are read after its end
  EXPECT_EQ(source().stats().live, 0U);
  EXPECT_EQ(source().stats().dead, 1U);
  EXPECT_EQ(Counted(), "2");
}

TEST_F(SegmentSourceTest, NoMapOrDescriptorOfAnEndedProcessIsKept) {
  const auto held = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), {});
    size_t count = text.find(PathOf("a.seg")) != std::string::npos ? 1 : 0;
    for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(fd, gone) == PathOf("a.seg") ? 1 : 0;
    }
    return count;
  };
  Put("a.seg", Counting(1));
  {
    const WriterLock lock(PathOf("a.seg"));
    Collect();
    EXPECT_EQ(held(), 3U);  // map and descriptor of the reader, and the lock's
  }
  Collect();
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(Counted(), "1");
}

TEST_F(SegmentSourceTest, ARemovedFileStillCounts) {
  SegmentBuilder segment = Counting(1);
  Put("a.seg", segment);
  std::filesystem::create_hard_link(PathOf("a.seg"), PathOf("hidden"));
  {
    const WriterLock lock(PathOf("a.seg"));
    EXPECT_EQ(Counted(), "1");
    Remove("a.seg");
    segment.Set(segment::kCellsPerChunk, 2);
    Put("hidden", segment);
    EXPECT_EQ(Counted(), "2");
  }
  EXPECT_EQ(Counted(), "2");
  Remove("hidden");
  EXPECT_EQ(Counted(), "2");
  std::filesystem::remove(directory());
  EXPECT_EQ(Counted(), "2");
}

TEST_F(SegmentSourceTest, OnlySegmentsOfTheRunCount) {
  UseOptions({.run_id = "run-2"});
  Put("old.seg", Counting(1, "run-1"));
  Put("new.seg", Counting(20, "run-2"));
  Put("any.seg", Counting(300));
  Put("alive.seg", Counting(4000, "run-3"));
  const WriterLock lock(PathOf("alive.seg"));
  EXPECT_EQ(Counted(), "320");
  EXPECT_EQ(source().stats().other_run, 2U);
  EXPECT_EQ(Counted(), "320");
  EXPECT_EQ(source().stats().other_run, 2U);
  EXPECT_EQ(source().stats().dead, 2U);
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(SegmentSourceTest, TheNewestIdentityDecidesAboutTheRun) {
  UseOptions({.run_id = "run-2"});
  SegmentBuilder segment = Counting(1, "run-1");
  Put("a.seg", segment);
  const WriterLock lock(PathOf("a.seg"));
  EXPECT_EQ(Counted(), "");
  segment.Identity({.run_id = "run-2", .role = "worker"});
  Put("a.seg", segment);
  EXPECT_EQ(Counted(), "1");
}

TEST_F(SegmentSourceTest, ACorruptFileCostsItselfAndIsReportedOnce) {
  Put("good.seg", Counting(1));
  PutText("text.seg",
          "this is not a segment, it is a line of text, and longer than any header could be expected to be........."
          "..................................................................................................."
          "...................................................................................................");
  SegmentBuilder future = Counting(2);
  future.header().major = 9;
  Put("future.seg", future);
  std::filesystem::create_symlink("good.seg", PathOf("link.seg"));
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(
      Diagnosed(),
      ElementsAre("refused: the segment " + PathOf("future.seg") +
                      " is not read: it has version 9.0, this agent reads version 1; use an agent that is at least as new "
                      "as the library",
                  HasSubstr("link.seg is not read: it is a symbolic link"), HasSubstr(R"(it starts with "this is ")")));
  EXPECT_THAT(Refused(), ElementsAre("future.seg version", "link.seg type", "text.seg magic"));
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(Diagnosed(), IsEmpty());
  EXPECT_THAT(Refused(), ElementsAre("future.seg version", "link.seg type", "text.seg magic"));
  Remove("text.seg");
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(Refused(), ElementsAre("future.seg version", "link.seg type"));
}

// While it lives, there are descriptors for so many segments more than this process has open.
class DescriptorsFor {
 public:
  explicit DescriptorsFor(rlim_t segments) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    const rlim_t share = static_cast<rlim_t>(next) + 1 + segments;  // the directory is open meanwhile
    rlimit limit = before_;
    for (limit.rlim_cur = share; limit.rlim_cur - limit.rlim_cur / 4 < share;)
      ++limit.rlim_cur;  // a quarter is the agent's own
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~DescriptorsFor() { setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorsFor(const DescriptorsFor&) = delete;
  DescriptorsFor& operator=(const DescriptorsFor&) = delete;

 private:
  rlimit before_{};
};

// So all segments of a job whose processes have ended are read, however few descriptors there are.
TEST_F(SegmentSourceTest, ProcessesThatEndedLeaveTheirDescriptorsToOthers) {
  std::string names;
  for (const char name : std::string("abcdefg")) Put(names.assign(1, name) + ".seg", Counting(1));
  source();
  const DescriptorsFor few(2);
  EXPECT_EQ(Counted(), "7");
  EXPECT_THAT(Refused(), IsEmpty());
  EXPECT_EQ(source().lifecycle().CountedFiles().size(), 7U);
}

TEST_F(SegmentSourceTest, ASegmentWithoutADescriptorIsReadAsSoonAsThereIsOne) {
  for (const char* name : {"a.seg", "b.seg", "c.seg"}) Put(name, Counting(1));
  const WriterLock locks[] = {WriterLock(PathOf("a.seg")), WriterLock(PathOf("b.seg")), WriterLock(PathOf("c.seg"))};
  source();
  {
    const DescriptorsFor few(2);
    EXPECT_EQ(Counted(), "2");
    EXPECT_THAT(Refused(), ElementsAre("c.seg access"));
    EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("c.seg is not read: cannot open it: Too many open files; raise the limit")));
    EXPECT_THAT(source().lifecycle().CountedFiles(), ElementsAre("a.seg", "b.seg"));
    EXPECT_EQ(Counted(), "2");
    Remove("a.seg");
    EXPECT_EQ(Counted(), "2") << "its process lives";
  }
  EXPECT_EQ(Counted(), "3") << "at the next collection";
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(SegmentSourceTest, ARefusedFileThatIsReplacedIsReadAgain) {
  PutText("a.seg", "nothing");
  EXPECT_EQ(Counted(), "");
  Remove("a.seg");
  Put("a.seg", Counting(1));
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(SegmentSourceTest, ADamagedSegmentKeepsItsLastGoodValues) {
  Put("a.seg", Counting(1));
  Put("b.seg", Counting(10));
  const WriterLock lock(PathOf("a.seg"));
  EXPECT_EQ(Counted(), "11");
  std::filesystem::resize_file(PathOf("a.seg"), 0);
  EXPECT_EQ(Counted(), "11");
  EXPECT_EQ(source().stats().bad, 1U);
  EXPECT_EQ(Counted(), "11");
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("became unreadable, its last good values count")));
}

TEST_F(SegmentSourceTest, ACopyOfASegmentIsNotCountedTwice) {
  Put("a.seg", Counting(1));
  const WriterLock lock(PathOf("a.seg"));
  std::filesystem::copy_file(PathOf("a.seg"), PathOf("copy.seg"));
  EXPECT_EQ(Counted(), "1");
  EXPECT_THAT(Refused(), ElementsAre("copy.seg duplicate"));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("it is a copy of " + PathOf("a.seg"))));
}

TEST_F(SegmentSourceTest, ASegmentThatItsProcessMovedIsCountedOnceWhereItIsNow) {
  SegmentBuilder segment = Counting(1);
  Put("z.seg", segment);
  EXPECT_EQ(Counted(), "1");
  segment.Set(segment::kCellsPerChunk, 5);
  Put("a.seg", segment);  // the same id and counts, in another file, which it holds now
  const WriterLock lock(PathOf("a.seg"));
  EXPECT_EQ(Counted(), "5");
  Remove("z.seg");
  EXPECT_EQ(Counted(), "5");
  EXPECT_EQ(source().stats().live, 1U);
  EXPECT_EQ(source().stats().dead, 0U);
}

TEST_F(SegmentSourceTest, ANewProcessUnderAnOldNameIsAnotherOne) {
  Put("a.seg", Counting(1));
  EXPECT_EQ(Counted(), "1");
  Remove("a.seg");
  Put("a.seg", Counting(2));
  EXPECT_EQ(Counted(), "3");
  EXPECT_EQ(source().stats().dead, 2U);
}

TEST_F(SegmentSourceTest, AnotherSegmentInTheInodeOfADeadOneIsAnotherOne) {
  Put("a.seg", Counting(1));
  EXPECT_EQ(Counted(), "1");
  const auto changed = [&] {
    struct stat info {};
    stat(PathOf("a.seg").c_str(), &info);
    return std::pair(info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
  };
  // In the same file, as on a filesystem that reuses inode numbers, and whose clock may not advance between the two.
  const SegmentBuilder other = Counting(2);
  for (const auto before = changed(); changed() == before;) {
    Put("a.seg", other);
  }
  EXPECT_EQ(Counted(), "3");
}

TEST_F(SegmentSourceTest, StatsTellWhatWasRead) {
  SegmentBuilder segment = Counting(1);
  segment.Record(50, "unknown");
  segment.header().dropped[1] = 3;
  segment.header().dropped[9] = 4;
  Put("a.seg", segment);
  EXPECT_EQ(CountSeries(*Collect()->layout), 1U + 13U);  // one for each reason of drops
  EXPECT_EQ(source().stats().records_skipped, 1U);
  EXPECT_EQ(source().stats().dropped, 7U);
}

}  // namespace
}  // namespace persia::agent::testing
