// The counts and files of ended processes, also if the agent is killed.
#include "ledger/retired_test.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr double kBounds[] = {1, 2};

TEST_F(RetiredTest, AnEndedProcessCountsOnAfterItsFileIsRemoved) {
  auto process = Start({.role = "trainer", .replica = 3, .labels = {{"zone", "b"}}});
  SegmentBuilder& segment = process->segment;
  segment.Counter("my_app", "batches", {{"feat", "user"}}, 7, 0.5);
  segment.Counter("my_app", "never", {}, 0);
  segment.Histogram("my_app", "sizes", {}, kBounds, 4.75, std::vector<uint64_t>{1, 0, 2});
  segment.Event("job", "started", 1'700'000'000'250, 2, 1.5, kBounds, std::vector<uint64_t>{0, 1, 0});
  segment.Gauge("my_app", "size", {}, 16);
  segment.header().dropped[1] = 5;
  process->Put();
  const Flat living = CollectFlat();
  EXPECT_EQ(living.at(R"(my_app_batches{feat="user",zone="b"}@rep_3/trainer)"), "7.5");
  EXPECT_EQ(living.at(R"(my_app_sizes{zone="b"}@rep_3/trainer)"), "4.75: 1 0 2");

  process->End();
  EXPECT_EQ(CollectFlat(), living);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(CollectFlat(), living);
  StartAgent();
  EXPECT_EQ(CollectFlat(), living) << "the state outlives the agent";
  EXPECT_EQ(source().stats().retired, 1U);
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredTest, ProcessesOneAfterAnotherAddUpExactly) {
  for (int i = 0; i < 10; ++i) {
    CountAndEnd((1ULL << 53) + 1, 0.1);
    Collect();
  }
  // The double next to 10 * (2^53 + 1) + 1. Added as doubles it would be 90071992547409920.
  EXPECT_EQ(Batches(), "90071992547409936");
  StartAgent();
  EXPECT_EQ(Batches(), "90071992547409936");
}

TEST_F(RetiredTest, FractionsOfProcessesOneAfterAnotherAddUpExactly) {
  for (int i = 0; i < 10; ++i) {
    CountAndEnd(0, 0.1);
    Collect();
  }
  EXPECT_EQ(Batches(), "1") << "added one by one as doubles they are 0.9999999999999999";
  StartAgent();
  EXPECT_EQ(Batches(), "1");
}

// Buckets of other bounds cannot be added: the newest definition is exposed.
TEST_F(RetiredTest, HistogramsOfProcessesWithOtherBoundsAreNotAdded) {
  const auto count_and_end = [this](const std::vector<double>& bounds) {
    auto process = Start();
    process->segment.Histogram("my_app", "sizes", {}, bounds, 2.5, std::vector<uint64_t>{1, 1, 0});
    process->Put();
    Collect();
    process->End();
    Collect();
    passed_ += std::chrono::seconds(10);
  };
  count_and_end({1, 2});
  EXPECT_EQ(CollectFlat().at("my_app_sizes"), "2.5: 1 1 0");
  count_and_end({1, 4});
  EXPECT_EQ(CollectFlat().at("my_app_sizes"), "2.5: 1 1 0");
  count_and_end({1, 4});
  EXPECT_EQ(CollectFlat().at("my_app_sizes"), "5: 2 2 0");
  StartAgent();
  EXPECT_EQ(CollectFlat().at("my_app_sizes"), "5: 2 2 0");
}

TEST_F(RetiredTest, ACountGoesOnFromItsFirstProcess) {
  const auto created = [this] {
    std::map<std::string, int64_t> by_name;
    for (const FamilyLayout& family : Collect()->layout->families) by_name[family.name] = family.series.at(0).created_ms;
    by_name.erase("persia_metrics_dropped_total");
    return by_name;
  };
  auto first = Start();
  first->segment.Counter("my_app", "batches", {}, 1);
  first->Put();
  const auto began = created();
  first->End();
  Collect();
  EXPECT_EQ(created(), began);
  StartAgent();
  EXPECT_EQ(created(), began) << "read from the state";
  passed_ += std::chrono::seconds(10);
  auto second = Start();
  second->segment.Counter("my_app", "batches", {}, 1);
  second->segment.Counter("my_app", "epochs", {}, 1);
  second->Put();
  const auto both = created();
  EXPECT_EQ(both.at("my_app_batches"), began.at("my_app_batches"));
  EXPECT_GT(both.at("my_app_epochs"), began.at("my_app_batches"));
  second->End();
  EXPECT_EQ(created(), both) << "a series of the second process alone";
}

// A segment has no time for its series: the time of the read before is that of series that are found later.
TEST_F(RetiredTest, ACountBeginsAfterTheLastReadWithoutIt) {
  auto process = Start();
  process->segment.Counter("my_app", "batches", {}, 1);
  process->Put();
  const int64_t birth_ms = static_cast<int64_t>(process->segment.header().birth_unix_ns / 1'000'000);
  Collect();
  passed_ += std::chrono::seconds(10);
  Collect();
  passed_ += std::chrono::seconds(10);
  process->segment.Counter("my_app", "later", {}, 1);
  process->Put();
  const auto created = [this] {
    std::vector<int64_t> of_both;
    const auto snapshot = Collect();
    for (const FamilyLayout& family : snapshot->layout->families) {
      if (family.name.starts_with("my_app")) of_both.push_back(family.series.at(0).created_ms);
    }
    return of_both;
  };
  EXPECT_EQ(created(), (std::vector<int64_t>{birth_ms, 1'800'000'010'000}));
  process->End();
  EXPECT_EQ(created(), (std::vector<int64_t>{birth_ms, 1'800'000'010'000}));
}

TEST_F(RetiredTest, TheStateGrowsWithTheSeriesAndNotWithTheProcesses) {
  CountAndEnd(1, 0.1);
  Collect();
  const auto after_one = CheckpointBytes();
  for (int i = 0; i < 200; ++i) {
    CountAndEnd(1, 0.1 * i);
    Collect();
  }
  // The exact sum of many fractions may take a few doubles more than that of one.
  EXPECT_LE(CheckpointBytes(), after_one + 5 * sizeof(double));
  EXPECT_THAT(Files(), IsEmpty());
}

// If the agent is killed after any step, each process counts once, and no file is left in the end.
struct FaultPoint {
  const char* step;
  int time;                // of the steps of that name
  bool in_second = false;  // whether it is in the second of two collections
};

class RetiredFaultTest : public RetiredTest, public ::testing::WithParamInterface<FaultPoint> {};

TEST_P(RetiredFaultTest, AnAgentThatIsKilledThereLosesAndDoublesNothing) {
  CountAndEnd(1);
  Collect();
  auto living = Start();
  living->segment.Counter("my_app", "batches", {}, 10);
  living->Put();
  CountAndEnd(100, 0.5);
  CountAndEnd(1000);
  EndSource();
  const pid_t pid = fork();
  if (pid == 0) {
    int time = 0;
    StartAgent([&](std::string_view step) {
      if (step == GetParam().step && ++time == GetParam().time) {
        raise(SIGKILL);
      }
    });
    Collect();
    CountAndEnd(10'000);
    Collect();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not come to";
  for (const char* agent : {"the next agent", "the one after"}) {
    SCOPED_TRACE(agent);
    StartAgent();
    // The process that ends between the two collections does so only if the agent comes so far.
    const std::string total = GetParam().in_second ? "11111.5" : "1111.5";
    EXPECT_EQ(Batches(), total);
    EXPECT_EQ(Batches(), total);
    EXPECT_THAT(Files(), ElementsAre(living->name));
    EXPECT_EQ(source().stats().retired, GetParam().in_second ? 4U : 3U);
    EXPECT_THAT(Diagnosed(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, RetiredFaultTest,
                         ::testing::Values(FaultPoint{"draft made", 1}, FaultPoint{"draft written", 1},
                                           FaultPoint{"draft on disk", 1}, FaultPoint{"renamed", 1}, FaultPoint{"removed", 1},
                                           FaultPoint{"removed", 2}, FaultPoint{"appended", 1, true},
                                           FaultPoint{"append on disk", 1, true}, FaultPoint{"removed", 3, true}),
                         [](const auto& info) {
                           std::string name(info.param.step);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name + "_" + std::to_string(info.param.time);
                         });

// The state keeps the ids of the files that a killed agent did not remove, also when it is written again.
TEST_F(RetiredTest, AgentsThatAreKilledOneAfterAnotherCountEachProcessOnce) {
  for (const uint64_t batches : {1, 10, 100}) {
    CountAndEnd(batches);
    EndSource();
    const pid_t pid = fork();
    if (pid == 0) {
      StartAgent([](std::string_view step) {
        if (step == "renamed") {
          raise(SIGKILL);
        }
      });
      Collect();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  EXPECT_THAT(Files(), UnorderedElementsAre("0.seg", "1.seg", "2.seg"));
  StartAgent();
  EXPECT_EQ(Batches(), "111");
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(source().stats().retired, 3U);
}

TEST_F(RetiredTest, AFileThatTookTheNameOfOneToBeRemovedStays) {
  fs::create_directories(PathOf("agent.state.draft/in/the/way"));
  CountAndEnd(5);
  EXPECT_EQ(Batches(), "5");
  SegmentBuilder another;
  another.Identity({.role = "worker"});
  another.Counter("my_app", "batches", {}, 7);
  Put("new", another);
  fs::rename(PathOf("new"), PathOf("0.seg"));
  const WriterLock lock(PathOf("0.seg"));
  fs::remove_all(PathOf("agent.state.draft"));
  EXPECT_EQ(Batches(), "12");
  EXPECT_TRUE(fs::exists(PathOf("0.seg")));
}

TEST_F(RetiredTest, AFileWhoseStateCannotBeWrittenStaysAndCountsOnce) {
  fs::create_directories(PathOf("agent.state.draft/in/the/way"));
  CountAndEnd(5);
  CountAndEnd(6);
  EXPECT_EQ(Batches(), "11");
  EXPECT_EQ(Batches(), "11");
  EXPECT_THAT(Files(), UnorderedElementsAre("0.seg", "1.seg", "agent.state.draft"));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("state: cannot write " + PathOf("agent.state"))));
  StartAgent();
  EXPECT_EQ(Batches(), "11") << "from the files";
  fs::remove_all(PathOf("agent.state.draft"));
  passed_ += std::chrono::seconds(60);  // it is tried again after a second
  EXPECT_EQ(Batches(), "11");
  EXPECT_EQ(Batches(), "11");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RetiredTest, ADamagedStateIsSetAsideAndReported) {
  CountAndEnd(5);
  Collect();
  const std::string path = PathOf("agent.state");
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[bytes.size() / 2] ^= 1;
  PutText("agent.state", bytes);
  CountAndEnd(7);
  StartAgent();
  EXPECT_EQ(Batches(), "7");
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr(path + ".broken-1")));
  EXPECT_THAT(Files(), ElementsAre("agent.state.broken-1"));
}

TEST_F(RetiredTest, ARunThatBeginsStartsAtZero) {
  CountAndEnd(5, 0, {.run_id = "run-1", .role = "worker"});
  EXPECT_EQ(Batches(), "5");
  run_id_ = "run-2";
  StartAgent();
  CountAndEnd(7, 0, {.run_id = "run-2", .role = "worker"});
  EXPECT_EQ(Batches(), "7");
  new_run_ = true;  // under the same name
  StartAgent();
  EXPECT_EQ(Batches(), "");
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredTest, ReadOnlyChangesNothing) {
  saves_living_ = true;
  StartAgent();
  CountAndEnd(5);
  auto living = Start();
  living->segment.Counter("my_app", "batches", {}, 100);
  living->Put();
  Collect();
  CountAndEnd(6);
  SegmentSourceOptions options;
  options.run_id = run_id_;
  options.ledger = {.file = StateFile(), .read_only = true, .run_id = run_id_};
  UseOptions(std::move(options));
  EXPECT_EQ(Batches(), "111") << "the living one from its segment alone";
  EXPECT_THAT(Files(), UnorderedElementsAre("1.seg", "2.seg"));
  PutText("agent.state", "no state");
  StartAgent();
  EXPECT_EQ(Batches(), "106");
}

TEST_F(RetiredTest, LivingProcessesCountFromTheStateIfTheirSegmentsAreLost) {
  saves_living_ = true;
  StartAgent();
  auto process = Start({.role = "trainer", .replica = 1, .labels = {{"zone", "b"}}});
  process->segment.Counter("my_app", "batches", {}, 7, 0.1);
  process->segment.Gauge("my_app", "size", {}, 16);
  const std::vector<uint64_t> buckets{1, 0, 2};
  process->segment.Histogram("my_app", "sizes", {}, kBounds, 4.75, buckets);
  process->Put();
  const Flat living = CollectFlat();
  StartAgent();
  EXPECT_EQ(CollectFlat(), living) << "a segment that is there counts, and nothing beside it";
  EXPECT_EQ(source().stats().retired, 0U);

  Remove(process->name);
  process->End();
  StartAgent();
  EXPECT_EQ(CollectFlat(), living) << "the host's memory is lost";
  EXPECT_EQ(source().stats().retired, 1U);
  StartAgent();
  EXPECT_EQ(CollectFlat(), living) << "folded once";
  EXPECT_EQ(source().stats().retired, 1U);
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredTest, AStateThatCannotBeSetAsideIsNotOverwritten) {
  PutText("agent.state", "all that is left of a run");
  for (int i = 1; i <= 1000; ++i) {
    PutText("agent.state.broken-" + std::to_string(i), "");
  }
  CountAndEnd(5);
  EXPECT_EQ(Batches(), "5");
  EXPECT_EQ(Batches(), "5");
  EXPECT_EQ(fs::file_size(PathOf("agent.state")), 25U);
  EXPECT_TRUE(fs::exists(PathOf("0.seg")));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("until it can be read")));
  Remove("agent.state.broken-7");
  EXPECT_EQ(Batches(), "5");
  EXPECT_EQ(fs::file_size(PathOf("agent.state.broken-7")), 25U);
  EXPECT_FALSE(fs::exists(PathOf("0.seg")));
}

}  // namespace
}  // namespace persia::agent::testing
