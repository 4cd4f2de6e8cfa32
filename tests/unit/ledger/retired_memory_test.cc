// Segments and a state for which there is no memory. The program has base/foreign_heap.cc, as the agent.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/foreign_memory.h"
#include "ledger/retired_test.h"

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

class RetiredMemoryTest : public RetiredTest {
 protected:
  ~RetiredMemoryTest() override { ForeignShare::SetLimit(ForeignShare::kDefaultLimit); }

  // One that counts a batch, among 150 series.
  std::unique_ptr<Worker> StartLarge(const std::string& prefix = "step_") {
    auto process = Start();
    process->segment.Counter("my_app", "batches", {}, 1);
    for (int i = 1; i < 150; ++i) process->segment.Counter("my_app", prefix + std::to_string(i), {}, 1);
    process->Put();
    return process;
  }
};

TEST_F(RetiredMemoryTest, ProcessesThatEndedTogetherAreReadOneAfterTheOther) {
  for (int i = 0; i < 20; ++i) StartLarge()->End();
  ForeignShare::SetLimit(2 * kMiB);
  EXPECT_EQ(Batches(), "20");
  EXPECT_EQ(source().stats().retired, 20U);
  EXPECT_EQ(source().stats().retired_series_refused, 0U);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredMemoryTest, ASegmentThatDoesNotFitStaysUntilTheLimitIsRaised) {
  StartLarge()->End();
  CountAndEnd(3);
  ForeignShare::SetLimit(kMiB / 4);
  EXPECT_EQ(Batches(), "3");
  EXPECT_THAT(Files(), ElementsAre("0.seg"));
  ASSERT_EQ(source().stats().refused.size(), 1U);
  EXPECT_EQ(source().stats().refused[0].problem.reason, "memory");
  EXPECT_THAT(Diagnosed(), ElementsAre(AllOf(HasSubstr("/0.seg is not read: it does not fit into the memory"),
                                             HasSubstr(" 262144 bytes"), HasSubstr("raise max_foreign_bytes"))));
  ForeignShare::SetLimit(ForeignShare::kDefaultLimit);
  passed_ += seconds(60);
  EXPECT_EQ(Batches(), "4");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RetiredMemoryTest, AProcessThatLivedIsReadWhateverTheLimit) {
  auto process = StartLarge();
  ForeignShare::SetLimit(kMiB / 4);
  EXPECT_EQ(Batches(), "1");
  process->segment.Counter("my_app", "more", {}, 1);
  process->End();
  EXPECT_EQ(Shown("my_app_more"), "1") << "a last time, after its end";
}

TEST_F(RetiredMemoryTest, AStateThatDoesNotFitIsKeptUntilTheLimitIsRaised) {
  for (const char* prefix : {"a", "b", "c", "d", "e", "f", "g", "h"}) StartLarge(prefix)->End();
  Collect();
  const auto bytes = fs::file_size(PathOf("agent.state"));
  ForeignShare::SetLimit(kMiB / 4);
  StartAgent();
  EXPECT_EQ(Batches(), "");
  CountAndEnd(3);
  EXPECT_EQ(Batches(), "3");
  EXPECT_EQ(fs::file_size(PathOf("agent.state")), bytes);
  EXPECT_THAT(Diagnosed(),
              ElementsAre(AllOf(HasSubstr("/agent.state does not fit into the memory"), HasSubstr("until it can be read"))));
  ForeignShare::SetLimit(ForeignShare::kDefaultLimit);
  passed_ += seconds(60);
  EXPECT_EQ(Batches(), "11");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RetiredMemoryTest, SeriesOfEndedProcessesTakeHalfOfTheLimit) {
  ForeignShare::SetLimit(2 * kMiB);
  Labels labels;
  for (int i = 10; i < 22; ++i) labels.emplace_back("label_" + std::to_string(i), std::string(1000, 'x'));
  for (int i = 0; i < 30; ++i) {
    auto process = Start();
    process->segment.Counter("my_app", "batches", {}, 1);
    process->segment.Counter("my_app", "large_" + std::to_string(i), labels, 1);
    process->Put().End();
    Collect();
  }
  EXPECT_EQ(Batches(), "30") << "a series that is there goes on";
  const uint64_t refused = source().stats().retired_series_refused;
  EXPECT_GT(refused, 10U);
  EXPECT_LT(refused, 25U);
}

}  // namespace
}  // namespace persia::agent::testing
