#include "gpu/gpu_xids.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/owned_fd.h"
#include "captured_log.h"
#include "files/journal_file.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const GpuXidKey kLost{{"dlrm", {{"instance", "rep_3"}, {"role", "trainer"}}}, "3", 79};
const GpuXidKey kMemory{{"dlrm", {{"instance", "no_rank"}}}, "0", 63};

class GpuXidsTest : public ::testing::Test {
 protected:
  [[nodiscard]] GpuXidCounts::Options Options(const std::string& run = "run_1") const {
    return {.file = std::make_shared<DiskJournalFile>(
                DiskJournalFile::Options{.directory_fd = directory_.get(), .directory = folder_.path(), .name = "dlrm.gpu"}),
            .run_id = run,
            .threaded = false};
  }

  const TemporaryDirectory folder_;
  const OwnedFd directory_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(GpuXidsTest, AnAgentThatFollowsGoesOnCounting) {
  {
    GpuXidCounts counts(Options());
    EXPECT_THAT(counts.Shown(), IsEmpty());
    counts.Add(kLost);
    counts.Add(kLost);
    counts.Add(kMemory);
    EXPECT_THAT(counts.Shown(), ElementsAre(Pair(kMemory, 1), Pair(kLost, 2)));
  }
  GpuXidCounts counts(Options());
  EXPECT_THAT(counts.Shown(), ElementsAre(Pair(kMemory, 1), Pair(kLost, 2)));
  counts.Add(kLost);
  EXPECT_THAT(counts.Shown(), ElementsAre(Pair(kMemory, 1), Pair(kLost, 3)));
}

TEST_F(GpuXidsTest, ANewRunStartsAtZero) {
  GpuXidCounts(Options()).Add(kLost);
  GpuXidCounts counts(Options("run_2"));
  EXPECT_THAT(counts.Shown(), IsEmpty());
  counts.Add(kMemory);
  EXPECT_THAT(GpuXidCounts(Options("run_2")).Shown(), ElementsAre(Pair(kMemory, 1)));
}

// A file whose reads and writes a test lets pass.
class Gate : public JournalFile {
 public:
  Result<std::optional<std::string>> Read(std::string& /*broken*/) override {
    if (read_fails) return Error{"Input/output error"};
    return content;
  }
  Status Replace(std::string_view bytes) override {
    if (fails) return Error{"the disk is full"};
    content = std::string(bytes);
    return Done{};
  }
  Status Append(std::string_view /*bytes*/) override { return Done{}; }
  bool SetAside(std::string_view /*why*/, std::string& /*message*/) override { return true; }
  Status Remove() override { return Done{}; }
  [[nodiscard]] std::string path() const override { return "/nowhere"; }

  bool fails = true;
  bool read_fails = false;
  std::optional<std::string> content;
};

TEST_F(GpuXidsTest, ADiskThatFailsHidesNoError) {
  const auto gate = std::make_shared<Gate>();
  GpuXidCounts counts({.file = gate, .run_id = "run_1", .threaded = false});
  counts.Add(kLost);
  EXPECT_THAT(counts.Shown(), ElementsAre(Pair(kLost, 1)));
}

TEST_F(GpuXidsTest, AFileThatCannotBeReadAtOnceIsNotOverwritten) {
  const CapturedLog log;
  const auto gate = std::make_shared<Gate>();
  gate->fails = false;
  auto now = std::chrono::steady_clock::now();
  const GpuXidCounts::Options options{.file = gate, .run_id = "run_1", .threaded = false, .now = [&] { return now; }};
  {
    GpuXidCounts before(options);
    before.Add(kLost);
    before.Add(kLost);
  }
  gate->read_fails = true;
  {
    GpuXidCounts counts(options);
    counts.Add(kLost);
    counts.Add(kMemory);
    EXPECT_THAT(counts.Shown(), IsEmpty()) << "no lower count than before";
    gate->read_fails = false;
    EXPECT_THAT(counts.Shown(), IsEmpty()) << "a disk that fails is not read at each collection";
    now += GpuXidCounts::kReadRetry;
    EXPECT_THAT(counts.Shown(), ElementsAre(Pair(kMemory, 1), Pair(kLost, 3)));
  }
  EXPECT_THAT(GpuXidCounts(options).Shown(), ElementsAre(Pair(kMemory, 1), Pair(kLost, 3)));
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("are not shown: ")));
}

TEST_F(GpuXidsTest, ADriverWithoutEndOfKindsIsBounded) {
  GpuXidCounts counts({});
  for (uint64_t xid = 0; xid < GpuXidCounts::kMaxKeys + 100; ++xid) counts.Add({kLost.identity, "0", xid});
  EXPECT_EQ(counts.Shown().size(), GpuXidCounts::kMaxKeys);
  counts.Add({kLost.identity, "0", 0});
  EXPECT_EQ(counts.Shown().begin()->second, 2) << "those that are there go on";
}

TEST_F(GpuXidsTest, AnotherFileIsNotTaken) {
  const OwnedFd file(openat(directory_.get(), "dlrm.gpu", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(file.get(), "hello, world, this is no journal", 32), 32);
  EXPECT_THAT(GpuXidCounts(Options()).Shown(), IsEmpty());
}

TEST(XidTest, TheClassSaysWhatToDo) {
  EXPECT_EQ(XidClass(79), "fatal");
  EXPECT_EQ(XidClass(63), "memory");
  EXPECT_EQ(XidClass(31), "application");
  EXPECT_EQ(XidClass(7777), "other");
  EXPECT_EQ(XidText(79), "GPU has fallen off the bus");
  EXPECT_EQ(XidText(7777), "");
}

}  // namespace
}  // namespace persia::agent
