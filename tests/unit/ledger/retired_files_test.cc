// Files that are not what they seem: other names of a segment, other contents under its id, and a state that is damaged.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ledger/retired_test.h"

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RetiredFilesTest : public RetiredTest, public ::testing::WithParamInterface<bool> {};

TEST_P(RetiredFilesTest, AProcessWithTwoFilesCountsOnceWhenItHasEnded) {
  auto process = Start();
  process->segment.Counter("my_app", "batches", {}, 5);
  process->Put();
  const bool link = GetParam();
  link ? fs::create_hard_link(PathOf(process->name), PathOf("other.seg"))
       : fs::copy(PathOf(process->name), PathOf("other.seg"));
  EXPECT_EQ(Batches(), "5");
  process->End();
  while (!Files().empty()) {
    EXPECT_EQ(Batches(), "5");
    passed_ += std::chrono::seconds(61);  // a file that was refused is looked at again
  }
  EXPECT_EQ(Batches(), "5");
  StartAgent();
  EXPECT_EQ(Batches(), "5");
}

INSTANTIATE_TEST_SUITE_P(Ways, RetiredFilesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Linked" : "Copied"; });

TEST_F(RetiredTest, AnotherContentUnderAKnownIdCostsNothingElse) {
  saves_living_ = true;
  StartAgent();
  CountAndEnd(100);
  auto process = Start();
  process->segment.Counter("my_app", "batches", {}, 5);
  process->segment.Counter("my_app", "more", {}, 5);
  process->Put();
  EXPECT_EQ(Batches(), "105");
  SegmentBuilder other;
  other.Identity({.role = "worker"});
  other.Gauge("my_app", "size", {}, 3);
  std::copy_n(process->segment.image().begin() + offsetof(segment::Header, segment_id), sizeof(segment::Header::segment_id),
              other.image().begin() + offsetof(segment::Header, segment_id));
  StartAgent();
  EXPECT_EQ(Batches(), "105");
  process->End();
  Remove(process->name);
  Put("other.seg", other);
  StartAgent();
  EXPECT_EQ(Batches(), "100") << "the file is all that there is of the process";
  EXPECT_EQ(Size(), "3");
  StartAgent();
  EXPECT_EQ(Batches(), "100");
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredTest, WhatWasReadOfADamagedStateIsWrittenAgain) {
  saves_living_ = true;
  StartAgent();
  CountAndEnd(5);
  Collect();
  CheckpointBytes();  // the sums are in the checkpoint
  const size_t checkpoint = fs::file_size(PathOf("agent.state"));
  auto process = Start();
  process->segment.Counter("my_app", "batches", {}, 6);
  process->Put();
  EXPECT_EQ(Batches(), "11");
  process->segment.Set(segment::kCellsPerChunk, 7);
  process->Put();
  EXPECT_EQ(Batches(), "12");
  EndSource();
  ASSERT_GT(fs::file_size(PathOf("agent.state")), checkpoint + 100);
  std::fstream(PathOf("agent.state"), std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(checkpoint) + 60)
      << "damage";
  StartAgent();
  EXPECT_EQ(Batches(), "12");
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("agent.state.broken-1")));
  process->End();
  EXPECT_EQ(Batches(), "12");
  StartAgent();
  EXPECT_EQ(Batches(), "12");
}

}  // namespace
}  // namespace persia::agent::testing
