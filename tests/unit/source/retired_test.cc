// What becomes of processes that have ended: their counts, their gauges, their files; and of an agent that is killed meanwhile.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "job_directory_test.h"
#include "source/retired_codec.h"

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Flat = std::map<std::string, std::string>;

constexpr double kBounds[] = {1, 2};

class RetiredTest : public JobDirectoryTest {
 protected:
  // A process of the job, until End().
  struct Process {
    Process(RetiredTest& test, const SegmentIdentity& identity) : test(test), name(std::to_string(test.processes_++) + ".seg") {
      segment.Identity(identity);
    }
    Process& Put() {
      test.JobDirectoryTest::Put(name, segment);
      if (!lock) {
        lock = std::make_unique<WriterLock>(test.PathOf(name));
      }
      return *this;
    }
    void End() { lock.reset(); }

    RetiredTest& test;
    const std::string name;
    SegmentBuilder segment;
    std::unique_ptr<WriterLock> lock;
  };

  RetiredTest() : directory_fd_(open(directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) { StartAgent(); }
  ~RetiredTest() override { close(directory_fd_); }

  // Another agent, or the same one again.
  void StartAgent(std::function<void(std::string_view)> after_step = {}) {
    SegmentSourceOptions options;
    options.run_id = run_id_;
    options.limits = limits_;
    options.retired.run_id = run_id_;
    options.retired.begins = begins_;
    options.retired.keeps_living = keeps_living_;
    options.retired.processes = {.gauge_ttl = seconds(300), .hide_left = hide_left_, .limits = limits_};
    options.retired.after_step = after_step;
    options.retired.file = StateFile::Options{.directory_fd = directory_fd_,
                                              .directory = directory(),
                                              .name = "agent.state",
                                              .magic = {'P', 'R', 'S', 'M', 'S', 'T', 'A', '\n'},
                                              .version = kRetiredStateVersion,
                                              .after_step = after_step};
    options.steady = [this] { return std::chrono::steady_clock::time_point(seconds(1000) + passed_); };
    options.wall = [this] { return std::chrono::system_clock::time_point(seconds(1'800'000'000) + passed_ + wall_set_); };
    UseOptions(std::move(options));
  }

  std::unique_ptr<Process> Start(const SegmentIdentity& identity = {.role = "worker"}) {
    return std::make_unique<Process>(*this, identity);
  }
  // One that counts and ends, seen alive or not.
  void CountAndEnd(uint64_t whole, double fraction = 0, const SegmentIdentity& identity = {.role = "worker"}) {
    auto process = Start(identity);
    process->segment.Counter("my_app", "batches", {}, whole, fraction);
    process->Put().End();
  }
  // One that lives and has set a gauge.
  std::unique_ptr<Process> StartWithGauge(double value, GaugePolicy policy = GaugePolicy::kLast) {
    auto process = Start();
    process->segment.Gauge("my_app", "size", {}, value, policy);
    process->Put();
    return process;
  }
  std::string Shown(const std::string& series) {
    const Flat flat = CollectFlat();
    return flat.contains(series) ? flat.at(series) : "";
  }
  std::string Batches() { return Shown("my_app_batches"); }
  std::string Size() { return Shown("my_app_size"); }
  // Names of the files in the directory, but for the state.
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory())) {
      if (entry.path().filename() != "agent.state") {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }

  std::string run_id_ = "run-1";
  bool begins_ = false;
  bool hide_left_ = true;
  bool keeps_living_ = false;
  SeriesLimits limits_;
  seconds passed_{0};
  seconds wall_set_{0};  // by how much somebody has set the wall clock
  const int directory_fd_;

 private:
  int processes_ = 0;
};

TEST_F(RetiredTest, WhatAnEndedProcessCountedStaysAndItsFileGoes) {
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

TEST_F(RetiredTest, TheStateGrowsWithTheSeriesAndNotWithTheProcesses) {
  const auto size = [&] { return fs::file_size(PathOf("agent.state")); };
  CountAndEnd(1, 0.1);
  Collect();
  const auto after_one = size();
  for (int i = 0; i < 200; ++i) {
    CountAndEnd(1, 0.1 * i);
    Collect();
  }
  // The exact sum of many fractions may take a few doubles more than that of one.
  EXPECT_LE(size(), after_one + 5 * sizeof(double));
  EXPECT_THAT(Files(), IsEmpty());
}

// Whoever is killed after whichever step, no process is lost, none counts twice, and no file is left in the end.
struct FaultPoint {
  const char* step;
  int time;  // of the steps of that name in one collect
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
  const pid_t pid = fork();
  if (pid == 0) {
    int time = 0;
    StartAgent([&](std::string_view step) {
      if (step == GetParam().step && ++time == GetParam().time) {
        raise(SIGKILL);
      }
    });
    Collect();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not come to";
  for (const char* agent : {"the next agent", "the one after"}) {
    SCOPED_TRACE(agent);
    StartAgent();
    EXPECT_EQ(Batches(), "1111.5");
    EXPECT_EQ(Batches(), "1111.5");
    EXPECT_THAT(Files(), ElementsAre(living->name));
    EXPECT_EQ(source().stats().retired, 3U);
    EXPECT_THAT(Diagnosed(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, RetiredFaultTest,
                         ::testing::Values(FaultPoint{"folded", 1}, FaultPoint{"folded", 2}, FaultPoint{"draft made", 1},
                                           FaultPoint{"draft written", 1}, FaultPoint{"draft on disk", 1},
                                           FaultPoint{"renamed", 1}, FaultPoint{"removed", 1}, FaultPoint{"removed", 2}),
                         [](const auto& info) {
                           std::string name(info.param.step);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name + "_" + std::to_string(info.param.time);
                         });

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
  EXPECT_EQ(Batches(), "11");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RetiredTest, ABrokenStateIsSetAsideAndSaid) {
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
  begins_ = true;  // under the same name
  StartAgent();
  EXPECT_EQ(Batches(), "");
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(RetiredTest, WhoOnlyLooksChangesNothing) {
  CountAndEnd(5);
  Collect();
  CountAndEnd(6);
  SegmentSourceOptions options;
  options.run_id = run_id_;
  options.retired = {.file = StateFile::Options{.directory_fd = directory_fd_,
                                                .directory = directory(),
                                                .name = "agent.state",
                                                .magic = {'P', 'R', 'S', 'M', 'S', 'T', 'A', '\n'},
                                                .version = kRetiredStateVersion},
                     .look_only = true,
                     .run_id = run_id_};
  UseOptions(std::move(options));
  EXPECT_EQ(Batches(), "11");
  EXPECT_THAT(Files(), ElementsAre("1.seg"));
  PutText("agent.state", "no state");
  StartAgent();
  EXPECT_EQ(Batches(), "6");
}

TEST_F(RetiredTest, AGaugeOfTheDeadShowsForItsTime) {
  auto process = StartWithGauge(4);
  hide_left_ = false;
  StartAgent();
  EXPECT_EQ(Size(), "4");
  process->End();
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(200);
  StartAgent();
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(99);
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(1);
  EXPECT_EQ(Size(), "") << "an agent that came between does not make it longer";
}

TEST_F(RetiredTest, AGaugeOfTheDeadStepsBackForOneOfTheLiving) {
  auto former = StartWithGauge(4);
  former->End();
  EXPECT_EQ(Size(), "4");
  auto silent = Start();
  silent->segment.UnsetGauge("my_app", "size");
  silent->Put();
  EXPECT_EQ(Size(), "4") << "one that has not set it yet does not count";
  auto next = StartWithGauge(2);
  EXPECT_EQ(Size(), "2");
  next->End();
  EXPECT_EQ(Size(), "2") << "who ended last counts";
}

TEST_F(RetiredTest, GaugesOfThoseThatEndTogetherFollowThePolicy) {
  const std::tuple<GaugePolicy, const char*, const char*> cases[] = {{GaugePolicy::kSum, "9", "5"},
                                                                     {GaugePolicy::kMin, "2", "2"},
                                                                     {GaugePolicy::kMax, "4", "3"},
                                                                     {GaugePolicy::kAvg, "3", "2.5"}};
  for (const auto& [policy, of_three, of_two] : cases) {
    SCOPED_TRACE(static_cast<int>(policy));
    run_id_ += "+";
    StartAgent();
    auto a = StartWithGauge(4, policy);
    auto b = StartWithGauge(2, policy);
    auto c = StartWithGauge(3, policy);
    EXPECT_EQ(Size(), of_three);
    for (auto* process : {&a, &b, &c}) {
      (*process)->End();
    }
    EXPECT_EQ(Size(), of_three);
    StartAgent();
    EXPECT_EQ(Size(), of_three);
    a = StartWithGauge(2, policy);
    b = StartWithGauge(3, policy);
    EXPECT_EQ(Size(), of_two) << "of the living alone";
    a->End();
    b->End();
    EXPECT_EQ(Size(), of_two) << "those that ended before are followed, not joined";
  }
}

TEST_F(RetiredTest, AProcessTakesThePlaceOfOneThatEnded) {
  auto a = StartWithGauge(1, GaugePolicy::kEach);
  auto b = StartWithGauge(2, GaugePolicy::kEach);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "2")));
  a->End();
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "2")));
  auto next = StartWithGauge(3, GaugePolicy::kEach);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "3"), Pair(R"(my_app_size{process="1"})", "2")));

  b->End();
  Collect();
  std::vector<std::string> places;
  for (const WorkerProcess& process : source().processes()) {
    places.push_back(std::to_string(process.ordinal) + (process.alive ? " alive after " : " empty after ") +
                     std::to_string(process.predecessors));
  }
  EXPECT_THAT(places, UnorderedElementsAre("0 alive after 1", "1 empty after 1"));
}

TEST_F(RetiredTest, EachProcessKeepsItsPlaceWhenTheAgentComesBack) {
  const auto places = [this] {
    Collect();
    std::map<uint32_t, std::string> by_ordinal;
    for (const WorkerProcess& process : source().processes()) {
      by_ordinal[process.ordinal] = (process.alive ? "alive after " : "empty after ") + std::to_string(process.predecessors);
    }
    return by_ordinal;
  };
  auto a = StartWithGauge(1);
  auto b = StartWithGauge(2);
  auto c = StartWithGauge(3);
  Collect();
  b->End();
  c->End();
  Collect();
  auto d = StartWithGauge(4);  // takes the place of b
  auto e = StartWithGauge(5);  // takes the place of c
  Collect();
  a->End();
  d->End();
  const auto before = places();
  EXPECT_THAT(before, ElementsAre(Pair(0U, "empty after 1"), Pair(1U, "empty after 2"), Pair(2U, "alive after 1")));
  StartAgent();
  EXPECT_EQ(places(), before);
  auto f = StartWithGauge(6);  // not in the state: nothing has ended since
  const auto with_f = places();
  EXPECT_EQ(with_f.at(0), "alive after 1");
  StartAgent();
  EXPECT_EQ(places(), with_f);
}

TEST_F(RetiredTest, AnInstanceThatLeftIsHiddenAndComesBackWithItsCounts) {
  CountAndEnd(5);
  auto other = Start({.role = "server"});
  other->segment.Counter("my_app", "batches", {}, 1);
  other->Put();
  passed_ += seconds(10);
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(299);
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(1);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair("my_app_batches@rep_0/server", "1")));
  StartAgent();
  EXPECT_EQ(Batches(), "") << "it has left for the next agent too";
  CountAndEnd(6);
  EXPECT_EQ(Batches(), "11");
  passed_ += seconds(1000);
  hide_left_ = false;
  StartAgent();
  EXPECT_EQ(Batches(), "11") << "on_instance_end: keep";
}

TEST_F(RetiredTest, AWallClockThatIsSetBackEndsNothingEarly) {
  CountAndEnd(5);
  Collect();
  passed_ -= seconds(100'000);
  StartAgent();
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(299);
  EXPECT_EQ(Batches(), "5");
}

TEST_F(RetiredTest, AWallClockThatIsSetWhileTheAgentLivesChangesNothing) {
  auto process = StartWithGauge(4);
  EXPECT_EQ(Size(), "4");
  process->End();
  EXPECT_EQ(Size(), "4");
  for (const seconds set : {seconds(1'000'000), seconds(-1'000'000), seconds(0)}) {
    wall_set_ = set;
    passed_ += seconds(99);
    EXPECT_EQ(Size(), "4") << set.count();
  }
  wall_set_ = seconds(-1'000'000);
  passed_ += seconds(3);
  EXPECT_EQ(Size(), "") << "its time is over by the steady clock";
}

TEST_F(RetiredTest, AProcessThatMakesSeriesWithoutEndIsHeldToTheLimit) {
  limits_ = {.series = 7, .series_of_instance = 4, .label_value_bytes = 8};
  StartAgent();
  const auto put = [&](Process& process, int first, int last) {
    for (int i = first; i <= last; ++i) {
      process.segment.Counter("my_app", "step_" + std::to_string(i), {}, 1);
    }
    process.Put();
  };
  auto runaway = Start();
  put(*runaway, 1, 6);
  auto good = Start({.role = "server"});
  good->segment.Counter("my_app", "batches", {{"feat", "user"}}, 1);
  good->segment.Counter("my_app", "batches", {{"feat", "too long for us"}}, 1);
  good->Put();
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_batches{feat="user"}@rep_0/server)", "1"), Pair("my_app_step_1", "1"),
                                         Pair("my_app_step_2", "1"), Pair("my_app_step_3", "1"), Pair("my_app_step_4", "1")));
  EXPECT_EQ(source().stats().left_out.instance_limit, 2U);
  EXPECT_EQ(source().stats().left_out.label_value_limit, 1U);
  EXPECT_THAT(
      Diagnosed(),
      UnorderedElementsAre(HasSubstr("series of instance rep_0, role worker are left out, the first of them of my_app_step_5: "
                                     "there are more than 4 of one instance"),
                           HasSubstr("label feat has more than 8 bytes")));
  auto many = Start({.role = "many"});
  put(*many, 1, 4);
  Collect();
  EXPECT_EQ(source().stats().left_out.agent_limit, 2U);
  EXPECT_EQ(source().stats().series - 3 * 9, 7U) << "beside the dropped counts of three instances";

  runaway->End();
  Collect();
  EXPECT_EQ(Shown("my_app_step_4"), "1") << "what was shown goes on to be";
  EXPECT_EQ(Shown("my_app_step_5"), "");
  EXPECT_EQ(source().stats().left_out.instance_limit, 0U);
  EXPECT_EQ(source().stats().retired_series_refused, 2U);
}

TEST_F(RetiredTest, WhatTheLivingCountedOutlivesTheirSegmentsIfTheStateDoes) {
  keeps_living_ = true;
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

TEST_F(RetiredTest, WhatShowsNoMoreTakesNobodysRoom) {
  limits_ = {.series = 6, .series_of_instance = 4, .label_value_bytes = 8};
  StartAgent();
  auto gauges = Start();
  for (int i = 0; i < 4; ++i) {
    gauges->segment.Gauge("my_app", "g" + std::to_string(i), {}, 1);
  }
  gauges->Put();
  gauges->End();
  EXPECT_EQ(Shown("my_app_g3"), "1");
  auto steady = Start();
  steady->Put();
  for (int i = 0; i < 4; ++i) {
    passed_ += seconds(100);
    Collect();
  }
  steady->End();
  CountAndEnd(5);
  EXPECT_EQ(Batches(), "5") << "gauges whose time is over";
  for (const int replica : {1, 2, 3}) {
    CountAndEnd(1, 0, {.role = "came and left", .replica = replica});
    CountAndEnd(1, 0, {.role = "came and left", .replica = replica});
    Collect();
    passed_ += seconds(100);
  }
  passed_ += seconds(1000);
  for (const int replica : {10, 11, 12, 13}) {
    CountAndEnd(1, 0, {.role = "new", .replica = replica});
  }
  const Flat flat = CollectFlat();
  EXPECT_TRUE(flat.contains("my_app_batches@rep_13/new")) << "instances that left";
  EXPECT_EQ(source().stats().retired_series_refused, 0U);
}

TEST_F(RetiredTest, NamesWithoutEndDoNotMakeTheStateGrow) {
  limits_ = {.series = 100, .series_of_instance = 3, .label_value_bytes = 8};
  StartAgent();
  const auto run = [&](int number) {
    auto process = Start();
    process->segment.Counter("my_app", "name_" + std::to_string(number), {}, 1);
    process->segment.Counter("my_app", "labelled", {{"l", std::string(500, static_cast<char>('a' + number % 26))}}, 1);
    process->Put().End();
    Collect();
    return fs::file_size(PathOf("agent.state"));
  };
  for (int i = 10; i < 13; ++i) {
    run(i);
  }
  const auto full = run(13);
  for (int i = 14; i < 40; ++i) {
    EXPECT_LE(run(i), full);
  }
}

TEST(RetiredCodecTest, DamagedPayloadsAreRefusedOrRead) {
  SegmentIdentity identity{.run_id = "r", .role = "worker", .labels = {{"a", "b"}}};
  RetiredState state{.run_id = "r",
                     .folded = {"id"},
                     .places = {{"of the living", 2}},
                     .living = {{"other", "alone"}},
                     .processes = RetiredProcesses({})};
  RetiredGroup& group = state.processes.TakeGroup(identity);
  SegmentFamily family{.known = true,
                       .kind = segment::Kind::kHistogram,
                       .policy = {},
                       .bounds = {1, 2},
                       .group = "g",
                       .name = "h",
                       .help = "",
                       .unit = ""};
  const uint32_t number = group.TakeFamily(family, {1, "id", 0});
  const size_t series = group.TakeSeries(number, 0, std::string("\1\0\0\0x\1\0\0\0y", 10), 1, true);
  group.SetReal(series, std::vector<double>{1, 1e-30});
  group.Cells(series)[1] = 3;
  const Moment now{1, {}, std::chrono::system_clock::time_point(seconds(1))};
  const std::string payload = EncodeRetired(state, now);

  const auto whole = DecodeRetired(payload, {}, now);
  ASSERT_TRUE(whole.ok()) << whole.error();
  EXPECT_EQ(EncodeRetired(whole.value(), now), payload);
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(DecodeRetired(payload.substr(0, size), {}, now).ok()) << size;
  }
  EXPECT_FALSE(DecodeRetired(payload + "x", {}, now).ok());
  size_t read = 0;
  for (size_t at = 0; at < payload.size(); ++at) {
    for (const char bit : {1, 16, -128}) {
      std::string damaged = payload;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      read += DecodeRetired(damaged, {}, now).ok() ? 1 : 0;  // a value or a text may be anything
    }
  }
  EXPECT_GT(read, 0U);
  EXPECT_LT(read, 3 * payload.size());
}

}  // namespace
}  // namespace persia::agent::testing
