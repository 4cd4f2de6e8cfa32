// Runs the program as users do, and reads its output and reports.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "socket.h"

namespace embedding_job {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class JobTest : public testing::Test {
 protected:
  JobTest() : folder_(testing::TempDir() + "job_test." + std::to_string(getpid())) {
    fs::create_directories(folder_);
    // Orphans become children of this process: Leftovers finds them.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setenv("PERSIA_METRICS_ENABLED", "0", 1);
    // A job that is killed cannot remove its own temporary folder, so it is created in this one.
    setenv("TMPDIR", folder_.c_str(), 1);
    std::ofstream corpus(folder_ / "corpus.txt");
    for (int i = 0; i < 600; ++i) {
      corpus << "the embedding server holds rows the trainer returns gradients and the loader number " << Letters(i % 37)
             << " reads\n";
    }
  }
  ~JobTest() override {
    for (const pid_t pid : running_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  static std::string Letters(int number) {
    return {static_cast<char>('a' + number % 26), static_cast<char>('a' + number / 26)};
  }

  pid_t Start(std::vector<std::string> arguments, const std::string& log, int replica = 0) {
    arguments.insert(arguments.begin(), EMBEDDING_JOB);
    arguments.insert(arguments.end(), {"--corpus", (folder_ / "corpus.txt").string()});
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    setenv("REPLICA_INDEX", std::to_string(replica).c_str(), 1);
    // Emptied before the job starts, so that it has only the new job's files.
    const Descriptor out(open((folder_ / log).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(out.get(), STDOUT_FILENO);
      dup2(out.get(), STDERR_FILENO);
      execv(EMBEDDING_JOB, argv.data());
      _exit(127);
    }
    running_.insert(pid);
    return pid;
  }
  // The exit code; 128 + n after a signal.
  int Wait(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    running_.erase(pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  int RunJob(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--report", Path("report.json")});
    return Wait(Start(std::move(arguments), "log"));
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Until a log says it. Its writer is waited for, so the test ends by its time limit if that never comes.
  void WaitForLog(const std::string& log, const std::string& text) const {
    while (Read(log).find(text) == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // The sum of a field over all lines of the report that have these words in them.
  static double Sum(const std::string& report, const std::string& field, const std::vector<std::string>& words) {
    const std::string key = "\"" + field + "\":";
    double sum = 0;
    for (size_t begin = 0; begin < report.size();) {
      const size_t end = std::min(report.find('\n', begin), report.size());
      const std::string line = report.substr(begin, end - begin);
      begin = end + 1;
      const auto in_line = [&](const std::string& word) { return line.find(word) != std::string::npos; };
      if (in_line(key) && std::all_of(words.begin(), words.end(), in_line)) {
        sum += std::strtod(line.c_str() + line.find(key) + key.size(), nullptr);
      }
    }
    return sum;
  }

  // Processes that were left behind: all come to this one, the subreaper.
  static bool NobodyLeft() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

  const fs::path folder_;
  std::set<pid_t> running_;
};

TEST_F(JobTest, BooksOfAllProcessesAgree) {
  ASSERT_EQ(RunJob({"--epochs=2", "--batch-size=128", "--inject-nan=0.5", "--staleness=3"}), 0) << Read("log");
  EXPECT_TRUE(NobodyLeft());
  const std::string report = Read("report.json");
  const auto of = [&](const std::string& name, const std::string& field = "value") {
    return Sum(report, field, {"\"name\":\"" + name + "\""});
  };
  const double batches = of("batches_total");
  EXPECT_GT(batches, 100);
  EXPECT_EQ(of("batches_sent_total"), batches);
  EXPECT_EQ(of("step_time", "count"), batches);
  for (const char* name : {"lookup_create_requests_time_cost", "lookup_rpc_time_cost", "update_gradient_time_cost",
                           "summation_time_cost", "lookup_batched_time_cost"}) {
    EXPECT_EQ(of(name, "count"), batches) << name;
    EXPECT_GT(of(name, "sum"), 0) << name;
  }
  EXPECT_EQ(of("lookup_mixed_batch_time_cost", "count"), 2 * batches);
  // Each id is missed once, and none is dropped.
  EXPECT_EQ(of("index_miss_count"), of("rows"));
  EXPECT_GT(of("rows"), 0);
  EXPECT_EQ(of("evictions_total"), 0);
  EXPECT_EQ(of("gradient_id_miss_count"), 0);
  EXPECT_NEAR(of("estimated_distinct_id"), of("rows"), 0.04 * of("rows"));
  // The worker left out the gradients that the trainer broke.
  EXPECT_GT(of("broken_gradients_total"), 0);
  EXPECT_EQ(of("nan_grad_skipped"), of("broken_gradients_total"));
  EXPECT_GE(of("nan_count"), of("broken_gradients_total"));
  EXPECT_LE(of("nan_count"), 2 * of("broken_gradients_total"));
  EXPECT_GT(of("batch_unique_indices_rate"), 0);
  EXPECT_LE(of("batch_unique_indices_rate"), 2);
  EXPECT_EQ(of("staleness"), 0);
  EXPECT_EQ(of("num_pending_batches"), 0);
}

// From log 2, of an untrained model, to less than 0.5004, of a model that only knows that one pair in five is of neighbours.
// How fast it falls depends on how stale the embeddings happen to be, where it ends does not.
TEST_F(JobTest, LossFalls) {
  ASSERT_EQ(RunJob({"--epochs=10", "--batch-size=128"}), 0) << Read("log");
  const std::string report = Read("report.json");
  const double first = Sum(report, "first_loss", {"\"batches\":"});
  const double last = Sum(report, "last_loss", {"\"batches\":"});
  EXPECT_GT(first, last);
  EXPECT_GT(last, 0);
  EXPECT_LT(last, 0.47);
  EXPECT_THAT(Read("log"), HasSubstr(" at first, "));
}

// With one batch in flight nothing is left to chance but time.
TEST_F(JobTest, ARunWithoutStalenessRepeats) {
  std::set<std::string> losses;
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(RunJob({"--epochs=2", "--batch-size=128", "--staleness=1"}), 0) << Read("log");
    const std::string report = Read("report.json");
    const size_t begin = report.find("\"first_loss\":");
    ASSERT_NE(begin, std::string::npos);
    losses.insert(report.substr(begin, report.find(",\"elapsed") - begin));
  }
  EXPECT_EQ(losses.size(), 1U) << *losses.begin();
}

// So few rows that an id is dropped while its batch is in flight.
TEST_F(JobTest, SmallServersMissGradients) {
  ASSERT_EQ(RunJob({"--epochs=5", "--server-capacity=16", "--staleness=8", "--batch-size=64"}), 0) << Read("log");
  const std::string report = Read("report.json");
  EXPECT_GT(Sum(report, "value", {"\"evictions_total\""}), 0);
  EXPECT_GT(Sum(report, "value", {"\"gradient_id_miss_count\""}), 0);
}

TEST_F(JobTest, LeavesTheNewestCheckpoints) {
  ASSERT_EQ(RunJob({"--epochs=3", "--batch-size=256", "--checkpoint-dir", Path("checkpoints")}), 0) << Read("log");
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "checkpoints")) {
    if (entry.is_regular_file()) {
      files.insert(fs::relative(entry.path(), folder_ / "checkpoints").string());
    }
  }
  EXPECT_EQ(files, (std::set<std::string>{"epoch_0003/embedding_server_0.table", "epoch_0003/embedding_server_1.table",
                                          "epoch_0003/trainer.dense", "final/embedding_server_0.table",
                                          "final/embedding_server_1.table", "final/trainer.dense"}));
  // 32 * 32 of the projection, and the bias.
  EXPECT_EQ(fs::file_size(folder_ / "checkpoints/final/trainer.dense"), 4 * (32 * 32 + 1));
}

TEST_F(JobTest, ASignalEndsItInOrder) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t job = Start({"--duration=3600", "--report", Path("report.json")}, "log");
    WaitForLog("log", "remaining");
    kill(job, number);
    EXPECT_EQ(Wait(job), 0) << Read("log");
    EXPECT_TRUE(NobodyLeft());
    const std::string report = Read("report.json");
    EXPECT_GT(Sum(report, "value", {"\"batches_total\""}), 0);
    // Nothing that was sent is lost.
    EXPECT_EQ(Sum(report, "value", {"\"batches_total\""}), Sum(report, "value", {"\"batches_sent_total\""}));
    EXPECT_EQ(Sum(report, "count", {"\"update_gradient_time_cost\""}), Sum(report, "value", {"\"batches_sent_total\""}));
    EXPECT_EQ(Sum(report, "value", {"\"staleness\""}), 0);
  }
}

// Whenever the signal comes, also before the roles have found each other.
TEST_F(JobTest, AnEarlySignalEndsItInOrderToo) {
  for (const char* after : {"embedding_server 0: listens", "embedding_worker 0: listens", "data_loader 0: reads"}) {
    for (int i = 0; i < 5; ++i) {
      const pid_t job = Start({"--duration=3600", "--report", Path("report.json")}, "log");
      WaitForLog("log", after);
      kill(job, SIGTERM);
      EXPECT_EQ(Wait(job), 0) << Read("log");
      EXPECT_TRUE(NobodyLeft());
      EXPECT_TRUE(fs::exists(folder_ / "report.json"));
      fs::remove(folder_ / "report.json");
    }
  }
}

// The child of a process, by its role; 0 if there is none.
pid_t ChildOf(pid_t parent, const std::string& role) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const auto read = [&](const char* file) {
      std::ifstream stream(entry.path() / file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    };
    if (read("status").find("\nPPid:\t" + std::to_string(parent) + "\n") != std::string::npos &&
        read("cmdline").find("--role" + std::string(1, '\0') + role) != std::string::npos) {
      return std::stoi(name);
    }
  }
  return 0;
}

TEST_F(JobTest, OneKilledRoleEndsTheJobWithAnError) {
  for (const char* role : {"data_loader", "trainer", "embedding_worker", "embedding_server"}) {
    const pid_t job = Start({"--duration=3600", "--report", Path("report.json")}, "log");
    WaitForLog("log", "remaining");
    const pid_t victim = ChildOf(job, role);
    ASSERT_NE(victim, 0) << role;
    kill(victim, SIGKILL);
    EXPECT_EQ(Wait(job), 1) << role;
    EXPECT_THAT(Read("log"), HasSubstr("embedding_job: the "));
    EXPECT_TRUE(NobodyLeft());
    EXPECT_FALSE(fs::exists(folder_ / "report.json"));
  }
}

TEST_F(JobTest, RolesEndWhenTheirParentIsKilled) {
  const pid_t job = Start({"--duration=3600"}, "log");
  WaitForLog("log", "remaining");
  kill(job, SIGKILL);
  EXPECT_EQ(Wait(job), 128 + SIGKILL);
  // They are this process's children now.
  int status = 0;
  while (wait(&status) > 0) {
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(NobodyLeft());
  EXPECT_THAT(Read("log"), HasSubstr("at last"));
}

// As four shells, or containers, would start them: clients before their servers.
class LoneRoles : public JobTest {
 protected:
  // An address on which nothing listens yet.
  static std::string FreeAddress() { return Listener("127.0.0.1:0").address(); }

  void StartAll(const std::vector<std::string>& loader_options) {
    const std::string worker = FreeAddress();
    const std::string servers[] = {FreeAddress(), FreeAddress()};
    roles_ = {Start({"--role=trainer", "--worker", worker, "--report", Path("trainer.json")}, "trainer.log")};
    std::vector<std::string> loader = {"--role=data_loader", "--worker", worker, "--report", Path("data_loader.json")};
    loader.insert(loader.end(), loader_options.begin(), loader_options.end());
    roles_.push_back(Start(loader, "data_loader.log"));
    roles_.push_back(Start({"--role=embedding_worker", "--listen", worker, "--servers", servers[0] + "," + servers[1],
                            "--report", Path("embedding_worker.json")},
                           "embedding_worker.log"));
    for (int i = 0; i < 2; ++i) {
      roles_.push_back(Start({"--role=embedding_server", "--listen", servers[i]}, "server_" + std::to_string(i) + ".log", i));
    }
  }
  void ExpectAllEndWell() {
    for (const pid_t pid : roles_) {
      EXPECT_EQ(Wait(pid), 0) << Read("trainer.log") << Read("embedding_worker.log") << Read("data_loader.log")
                              << Read("server_0.log") << Read("server_1.log");
    }
  }

  std::vector<pid_t> roles_;
};

TEST_F(LoneRoles, FindEachOtherInAnyOrder) {
  StartAll({"--epochs=2"});
  ExpectAllEndWell();
  const double sent = Sum(Read("data_loader.json"), "value", {"\"batches_sent_total\""});
  EXPECT_GT(sent, 0);
  EXPECT_EQ(Sum(Read("trainer.json"), "value", {"\"batches_total\""}), sent);
  EXPECT_EQ(Sum(Read("embedding_worker.json"), "count", {"\"lookup_rpc_time_cost\""}), sent);
}

TEST_F(LoneRoles, ASignalToAnyOfThemEndsTheJob) {
  for (size_t role = 0; role < 5; ++role) {
    StartAll({"--duration=3600"});
    WaitForLog("trainer.log", "remaining");
    kill(roles_[role], SIGTERM);
    ExpectAllEndWell();
  }
}

TEST_F(JobTest, BadOptionsAreRefused) {
  EXPECT_EQ(RunJob({"--dimension=7"}), 2);
  EXPECT_THAT(Read("log"), HasSubstr("embedding_job: --dimension \"7\": a multiple of 4 is wanted"));
}

TEST_F(JobTest, ReportsThatCannotBeWrittenAreAnError) {
  EXPECT_EQ(Wait(Start({"--epochs=1", "--report", Path("missing/report.json")}, "log")), 1);
  EXPECT_THAT(Read("log"), HasSubstr("missing/report.json"));
  EXPECT_TRUE(NobodyLeft());
}

}  // namespace
}  // namespace embedding_job
