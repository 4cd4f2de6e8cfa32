#include "job/job_session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "job/test_job.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class JobSessionTest : public ::testing::Test {
 protected:
  JobSessionTest() {
    options_.job_name = "a job";
    options_.metrics_dir = job_.directory();
  }
  AgentOptions Options(const std::string& run_id) {
    options_.run_id = run_id;
    return options_;
  }
  Result<JobSession> Begin(const std::string& run_id = {}) { return JobSession::Begin(Options(run_id)); }
  // By an agent that has counted all segments.
  Result<JobSession::Removal> EndRun(JobSession& session) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(job_.directory())) names.insert(entry.path().filename());
    return session.EndRun(names);
  }

  TestJob job_;
  AgentOptions options_;
};

TEST_F(JobSessionTest, BeginsARunAndWritesTheConf) {
  const auto session = Begin();
  ASSERT_TRUE(session.ok());
  EXPECT_FALSE(session.value().continued());
  const AgentConf conf = JobDirectory::OpenExisting(job_.directory()).value().ReadConf();
  EXPECT_EQ(conf.run_id, session.value().run_id());
  EXPECT_EQ(conf.job, "a job");
  EXPECT_TRUE(conf.enabled);
}

TEST_F(JobSessionTest, ContinuesAnUnfinishedRun) {
  const std::string run = Begin().value().run_id();
  const auto next = Begin();
  EXPECT_EQ(next.value().run_id(), run);
  EXPECT_TRUE(next.value().continued());
}

TEST_F(JobSessionTest, DoesNotRewriteAnUnchangedConf) {
  const auto inode = [this] {
    struct stat info {};
    EXPECT_EQ(stat((job_.directory() + "/agent.conf").c_str(), &info), 0);
    return info.st_ino;
  };
  const std::string run = Begin().value().run_id();
  const int kept = open((job_.directory() + "/agent.conf").c_str(), O_RDONLY | O_CLOEXEC);  // its number is not given away
  const ino_t before = inode();
  EXPECT_EQ(Begin().value().run_id(), run);
  EXPECT_EQ(inode(), before);
  ASSERT_TRUE(Begin("another").ok());
  EXPECT_NE(inode(), before);
  close(kept);
}

TEST_F(JobSessionTest, PublishesThePageAndKeepsItForTheNextAgent) {
  const auto conf = [this] { return JobDirectory::OpenExisting(job_.directory()).value().ReadConf(); };
  {
    auto session = Begin();
    ASSERT_TRUE(session.value().PublishPage("http://127.0.0.1:9464").ok());
    EXPECT_EQ(conf().web, "http://127.0.0.1:9464");
    EXPECT_EQ(conf().run_id, session.value().run_id());
  }
  auto next = Begin();
  EXPECT_EQ(conf().web, "http://127.0.0.1:9464");
  ASSERT_TRUE(next.value().PublishPage("").ok());
  EXPECT_EQ(conf().web, "");
}

TEST_F(JobSessionTest, BeginsAnotherRunAfterOneThatEnded) {
  std::string run;
  {
    auto session = Begin();
    run = session.value().run_id();
    ASSERT_TRUE(EndRun(session.value()).ok());
  }
  const auto next = Begin();
  EXPECT_NE(next.value().run_id(), run);
  EXPECT_FALSE(next.value().continued());
}

TEST_F(JobSessionTest, ConfiguredRunWins) {
  EXPECT_EQ(Begin("first").value().run_id(), "first");
  EXPECT_FALSE(Begin("second").value().continued());
  EXPECT_TRUE(Begin("second").value().continued());
}

TEST_F(JobSessionTest, SecondAgentWritesNothingAndKnowsTheFirst) {
  const auto first = Begin();
  const auto second = Begin();
  EXPECT_EQ(second.value().other_agent(), std::to_string(getpid()));
  EXPECT_EQ(second.value().run_id(), first.value().run_id());
  EXPECT_FALSE(second.value().other_run());
  const auto third = Begin("another");
  EXPECT_TRUE(third.value().other_run());
  EXPECT_EQ(ViewJob(Options("")).run_id, first.value().run_id());
}

TEST_F(JobSessionTest, AStateDirectoryThatCannotBeOpenedLeavesTheStateBesideTheSegments) {
  std::ofstream(job_.root() / "file") << "text";
  options_.state_dir = job_.root() / "file/state";
  const auto session = Begin("r");
  ASSERT_TRUE(session.ok()) << session.error();
  EXPECT_THAT(session.value().state_error(), ::testing::HasSubstr("/file is not a directory"));
  EXPECT_EQ(session.value().state_location().directory, job_.directory());
  options_.state_dir = job_.root() / "state";
  EXPECT_EQ(Begin("r").value().state_error(), "");
}

// As srun starts them: each agent has its own replica.
class StateDirTest : public JobSessionTest {
 protected:
  StateDirTest() { options_.state_dir = job_.root() / "state"; }
  AgentOptions Of(int replica, const std::string& directory = "") {
    AgentOptions options = options_;
    options.replica = replica;
    if (!directory.empty()) options.metrics_dir = job_.root() / directory;
    return options;
  }
  // The files that the agent uses for its state; it ends then.
  std::string Files(const AgentOptions& options) {
    const auto session = JobSession::Begin(options);
    return session.ok() ? session.value().state_location().prefix : session.error();
  }
  // The agent has collected, and is killed.
  std::string Collect(const AgentOptions& options) {
    const auto session = JobSession::Begin(options);
    session.value().NoteStateName(options);
    const StateLocation place = session.value().state_location();
    std::ofstream(place.directory + "/" + place.FileName("state")) << "counts";
    return place.prefix;
  }
};

TEST_F(StateDirTest, TheNextAgentOfARunUsesTheFilesOfTheFirst) {
  EXPECT_EQ(Files(Of(3)), "a%20job.rep_3");
  EXPECT_EQ(Files(Of(1)), "a%20job.rep_3");
  EXPECT_EQ(Files(Of(3)), "a%20job.rep_3");
  AgentOptions another_run = Of(1);
  another_run.run_id = "another";
  EXPECT_EQ(Files(another_run), "a%20job.rep_1");
}

TEST_F(StateDirTest, AgentsOfSeveralHostsUseSeveralFiles) {
  EXPECT_EQ(Files(Of(0, "host_a")), "a%20job.rep_0");
  EXPECT_EQ(Files(Of(4, "host_b")), "a%20job.rep_4");
  EXPECT_EQ(Files(Of(5, "host_b")), "a%20job.rep_4");
  EXPECT_EQ(Files(Of(1, "host_a")), "a%20job.rep_0");
}

TEST_F(StateDirTest, ANoteTellsTheFilesWhereAgentConfIsLost) {
  EXPECT_EQ(Collect(Of(0, "first")), "a%20job.rep_0");
  EXPECT_EQ(Collect(Of(1, "first")), "a%20job.rep_0");
  EXPECT_EQ(Files(Of(1, "restarted")), "a%20job.rep_0");
  EXPECT_EQ(Files(Of(2, "restarted again")), "a%20job.rep_2") << "it was no agent of that run";
  std::filesystem::remove_all(job_.root() / "restarted");
  const auto held = JobSession::Begin(Of(0, "of another host"));
  EXPECT_EQ(Files(Of(1, "restarted")), "a%20job.rep_1") << "another host has these files";
}

// Such as the first host's agent, if one that went on with its files has moved to another host and was started before.
TEST_F(StateDirTest, AnAgentWhoseFilesAnotherHostHasCollectsWithItsStateBesideTheSegments) {
  const auto held = JobSession::Begin(Of(0, "of another host"));
  {
    const auto session = JobSession::Begin(Of(0));
    ASSERT_TRUE(session.ok()) << session.error();
    EXPECT_THAT(session.value().state_error(),
                ::testing::HasSubstr("uses " + options_.state_dir + "/a%20job.rep_0.state already"));
    EXPECT_EQ(session.value().state_location().directory, job_.directory());
    EXPECT_EQ(session.value().state_location().prefix, "agent");
  }
  EXPECT_EQ(Files(Of(1)), "a%20job.rep_1") << "its conf names no files of that host";
}

TEST_F(StateDirTest, NoNoteOutlivesItsRun) {
  Collect(Of(0));
  Collect(Of(1));
  const std::string note = options_.state_dir + "/a%20job.rep_1.host";
  EXPECT_TRUE(std::filesystem::exists(note));
  options_.job_name = "a job.rep_1";
  Collect(Of(0, "of another job"));
  Collect(Of(1, "of another job"));
  options_.job_name = "a job";
  ASSERT_TRUE(JobSession::Begin(Of(1)).value().EndRun({}).ok());
  EXPECT_FALSE(std::filesystem::exists(note));
  EXPECT_TRUE(std::filesystem::exists(options_.state_dir + "/a%20job.rep_1.rep_1.host"));
}

// The kernel frees the locks of a killed agent one after the other.
TEST_F(StateDirTest, ALockThatIsFreeInAMomentIsWaitedFor) {
  auto state = JobDirectory::Open({.path = options_.state_dir});
  ASSERT_FALSE(state.value().Lock("a%20job.rep_0.lock").value());
  std::string files;
  std::thread next([&] { files = Files(Of(0)); });
  while (!std::filesystem::exists(job_.directory() + "/agent.lock") ||
         !JobDirectory::OpenExisting(job_.directory()).value().Holder()) {
    std::this_thread::yield();
  }
  state = Error{"unlocked"};
  next.join();
  EXPECT_EQ(files, "a%20job.rep_0");
}

TEST_F(JobSessionTest, WorkerEnvironmentHasDirectoryJobAndRun) {
  EXPECT_THAT(Begin("r").value().WorkerEnvironment(),
              ElementsAre(Pair("PERSIA_METRICS_DIR", job_.directory()), Pair("PERSIA_JOB_NAME", "a job"),
                          Pair("PERSIA_RUN_ID", "r"), Pair("PERSIA_METRICS_ENABLED", "1")));
}

TEST_F(JobSessionTest, DisabledJobSaysSoToWorkersOfOthers) {
  options_.enable_metrics = false;
  const auto session = Begin("r");
  EXPECT_FALSE(JobDirectory::OpenExisting(job_.directory()).value().ReadConf().enabled);
  EXPECT_THAT(session.value().WorkerEnvironment(), ::testing::Contains(Pair("PERSIA_METRICS_ENABLED", "0")));
}

TEST_F(JobSessionTest, EndOfARunRemovesTheSegmentsOfEndedProcesses) {
  auto session = Begin("ours");
  TestJob::Worker dead(job_, 1, "ours");
  TestJob::Worker alive(job_, 1, "ours");
  TestJob::Worker other(job_, 1, "theirs");
  dead.End();
  other.End();
  ASSERT_EQ(job_.Segments(), 3);
  const auto uncounted = session.value().EndRun({}).value();
  EXPECT_EQ(uncounted.removed, 0U) << "its values would be lost";
  EXPECT_EQ(uncounted.kept, 1U);
  EXPECT_EQ(EndRun(session.value()).value().removed, 1U);
  EXPECT_EQ(job_.Segments(), 2);
}

// Whichever step fails, or is the last before a kill: without the state, a run that does not say that it ended would go on from
// zero.
TEST_F(JobSessionTest, AnEndThatFailsLosesNoStateOfARunThatMayGoOn) {
  const std::string state = job_.directory() + "/agent.state";
  const auto says_ended = [this] { return JobDirectory::OpenExisting(job_.directory()).value().ReadConf().ended; };
  auto session = Begin("r");
  std::ofstream(state) << "counts";
  const std::string in_the_way = job_.directory() + "/agent.conf.draft";
  std::filesystem::create_directories(in_the_way + "/not empty");
  EXPECT_FALSE(EndRun(session.value()).ok());
  EXPECT_FALSE(says_ended());
  EXPECT_TRUE(std::filesystem::exists(state));
  std::filesystem::remove_all(in_the_way);
  std::filesystem::remove(state);
  std::filesystem::create_directories(state + "/not empty");
  EXPECT_FALSE(EndRun(session.value()).ok());
  EXPECT_TRUE(says_ended());
}

// The agent was killed while it ended the run, or another run has begun since.
TEST_F(JobSessionTest, AnAgentWhoseRunIsOverBeginsNone) {
  const std::string state = job_.directory() + "/agent.state";
  const auto conf = [this] { return JobDirectory::OpenExisting(job_.directory()).value().ReadConf(); };
  const JobStarter killed{.process = "1:1:1", .command = "1", .may_be_over = true};
  EXPECT_FALSE(JobSession::Begin(Options("r"), {}, killed).value().run_is_over());
  ASSERT_TRUE(Begin("r").value().EndRun({}).ok());
  std::ofstream(state) << "counts";
  EXPECT_TRUE(JobSession::Begin(Options("r"), {}, killed).value().run_is_over());
  EXPECT_TRUE(conf().ended);
  EXPECT_FALSE(std::filesystem::exists(state));
  ASSERT_TRUE(Begin("next").ok());
  std::ofstream(state) << "counts";
  EXPECT_TRUE(JobSession::Begin(Options("r"), {}, killed).value().run_is_over());
  EXPECT_EQ(conf().run_id, "next");
  EXPECT_TRUE(std::filesystem::exists(state));
}

TEST_F(JobSessionTest, DefaultDirectoryIsTheUsersAndTheJobs) {
  AgentOptions options;
  options.job_name = "a/b";
  EXPECT_EQ(MetricsDirOf(options), "/dev/shm/persia-metrics-" + std::to_string(geteuid()) + "/a%2Fb");
  options.metrics_dir = "/x";
  EXPECT_EQ(MetricsDirOf(options), "/x");
}

TEST_F(JobSessionTest, AnotherJobWaitsForTheDirectory) {
  {
    const auto first = Begin();
    options_.job_name = "another";
    const auto second = Begin();
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second.value().other_job(), "the agent with pid " + std::to_string(getpid()) + " of job \"a job\"");
    EXPECT_EQ(JobDirectory::OpenExisting(job_.directory()).value().ReadConf().job, "a job");
  }
  const auto later = Begin();
  EXPECT_EQ(later.value().other_job(), "");
  EXPECT_FALSE(later.value().continued()) << "two jobs have no run in common";
}

TEST_F(JobSessionTest, ASupervisorKeepsTheDirectoryWithoutAnAgent) {
  const JobStarter starter{.process = ProcessText(getpid()), .command = "1"};
  const std::string run = JobSession::Begin(Options(""), {}, starter).value().run_id();
  options_.job_name = "another";
  EXPECT_EQ(Begin().value().other_job(), "exec with pid " + std::to_string(getpid()) + " of job \"a job\"");
  options_.job_name = "a job";
  EXPECT_EQ(JobSession::Begin(options_, {}, starter).value().run_id(), run) << "the next agent of the same supervisor";
}

TEST_F(JobSessionTest, CountsTheExecsOfARunThatFollowOneAnother) {
  const auto attempt_of = [this](JobStarter starter) {
    starter.command = "1";
    const auto session = JobSession::Begin(Options(""), {}, starter);
    return std::pair(session.value().attempt(), session.value().run_began());
  };
  const auto [first, began] = attempt_of({.process = "1:1:1"});
  EXPECT_EQ(first, 1);
  EXPECT_NEAR(static_cast<double>(began), static_cast<double>(std::time(nullptr)), 60);
  EXPECT_EQ(attempt_of({.process = "1:1:1"}), std::pair(1, began)) << "another agent of it";
  EXPECT_EQ(attempt_of({.process = "2:2:2", .goes_on = true}), std::pair(1, began)) << "it has waited for its turn";
  const std::string living = ProcessText(getpid());
  EXPECT_EQ(attempt_of({.process = living}), std::pair(2, began));
  EXPECT_EQ(attempt_of({.process = "3:3:3"}), std::pair(2, began)) << "it runs beside the other one";
  EXPECT_EQ(attempt_of({}), std::pair(2, began)) << "of run";
  {
    auto last = Begin();
    ASSERT_TRUE(EndRun(last.value()).ok());
  }
  EXPECT_EQ(attempt_of({.process = "4:4:4"}).first, 1);
}

TEST_F(JobSessionTest, AProcessWithAReusedPidIsAnotherOne) {
  const std::string own = ProcessText(getpid());
  const JobStarter starter{.process = own.substr(0, own.find(':')) + ":1" + own.substr(own.rfind(':')), .command = "1"};
  ASSERT_TRUE(JobSession::Begin(Options(""), {}, starter).ok());
  options_.job_name = "another";
  EXPECT_EQ(Begin().value().other_job(), "");
}

TEST_F(JobSessionTest, AProcessThatOutlivedItsSupervisorKeepsTheDirectory) {
  const JobStarter gone{.process = "1:1:1", .command = "1"};
  ASSERT_TRUE(JobSession::Begin(Options("r"), {}, gone).ok());
  TestJob::Worker worker(job_, 1, "r");
  options_.job_name = "another";
  EXPECT_EQ(JobSession::Begin(Options(""), {}, {.process = "2:2:2", .command = "2"}).value().other_job(),
            "a process of job \"a job\"");
  worker.End();
  EXPECT_EQ(JobSession::Begin(Options(""), {}, {.process = "2:2:2", .command = "2"}).value().other_job(), "");
}

TEST_F(JobSessionTest, ACommandIsItsWordsAndItsDirectory) {
  EXPECT_EQ(CommandText({"a", "b"}), CommandText({"a", "b"}));
  EXPECT_NE(CommandText({"a", "b"}), CommandText({"a b"}));
  const std::string here = CommandText({"a"});
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(job_.root());
  EXPECT_NE(CommandText({"a"}), here);
  std::filesystem::current_path(before);
}

TEST_F(JobSessionTest, ViewingAJobCreatesNothing) {
  EXPECT_EQ(ViewJob(options_).run_id, "");
  EXPECT_FALSE(std::filesystem::exists(job_.directory()));
}

}  // namespace
}  // namespace persia::agent
