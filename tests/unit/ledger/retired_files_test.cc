// Misleading files: other names of a segment, other contents under its id, and a state that is damaged.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "ledger/retired_test.h"

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
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
  CountAndEnd(5);
  CheckpointBytes();  // the sum is in the checkpoint
  const auto checkpoint = static_cast<std::streamoff>(fs::file_size(PathOf("agent.state")));
  for (const uint64_t batches : {10, 100}) {
    CountAndEnd(batches);
    Collect();
  }
  EndSource();
  std::fstream(PathOf("agent.state"), std::ios::in | std::ios::out | std::ios::binary).seekp(checkpoint + 60) << "damage";
  StartAgent();
  EXPECT_EQ(Batches(), "5") << "the records after the damage cannot be told apart";
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("agent.state.broken-1")));
  StartAgent();
  EXPECT_EQ(Batches(), "5");
}

// The files of ended processes whose fold is on disk, although they could not be removed.
class StickyDirectory : public DiskSegmentDirectory {
 public:
  using DiskSegmentDirectory::DiskSegmentDirectory;
  Removal Remove(const std::string&, const FileId&) override { return Removal::kFailed; }
};

TEST_F(RetiredTest, ADamagedCheckpointDoublesNothing) {
  const auto start = [this] {
    SegmentSourceOptions options;
    options.run_id = run_id_;
    options.ledger = LedgerOptions();
    options.ledger.file = StateFile();
    options.files = std::make_unique<StickyDirectory>(directory());
    UseOptions(std::move(options));
  };
  start();
  CountAndEnd(5);
  EXPECT_EQ(Batches(), "5");
  CheckpointBytes();
  EndSource();
  std::ifstream file(PathOf("agent.state"), std::ios::binary);
  const std::string state{std::istreambuf_iterator<char>(file), {}};
  for (size_t at = 40; at < state.size(); ++at) {
    SCOPED_TRACE(at);
    std::string damaged = state;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    std::ofstream(PathOf("agent.state"), std::ios::binary) << damaged;
    start();
    EXPECT_THAT(Batches(), AnyOf("5", "")) << "the sum may be lost, but not the id of what was added to it";
    EndSource();
  }
}

TEST_F(RetiredTest, AForgottenInstanceStaysForgotten) {
  limits_ = {.series = 2, .series_of_instance = 2, .label_value_bytes = 8};
  StartAgent();
  for (int replica = 0; replica < 8; ++replica) {
    CountAndEnd(1, 0, {.role = "worker", .replica = replica});
    Collect();
    passed_ += std::chrono::seconds(301);
    Collect();
  }
  StartAgent();
  CountAndEnd(5, 0, {.role = "worker", .replica = 1});
  EXPECT_EQ(Shown("my_app_batches@rep_1/worker"), "5");
}

TEST_F(RetiredTest, TheLastGaugeOfTheDeadIsTheSameAfterARestart) {
  auto older = Start();
  const uint32_t size = older->segment.Gauge("my_app", "size", {}, 1);
  older->Put();
  auto younger = StartWithGauge(2);
  EXPECT_EQ(Size(), "2");
  older->segment.Set(size, std::bit_cast<uint64_t>(3.0));
  older->Put();
  EXPECT_EQ(Size(), "3");
  for (auto* process : {&younger, &older}) {
    (*process)->End();
    EXPECT_EQ(Size(), "3");
    StartAgent();
    EXPECT_EQ(Size(), "3");
  }
}

}  // namespace
}  // namespace persia::agent::testing
