#include "worker.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace persia::metrics::tests {
namespace {

constexpr const char* kVariables[] = {"PERSIA_METRICS_DIR",
                                      "PERSIA_JOB_NAME",
                                      "PERSIA_ROLE",
                                      "PERSIA_RUN_ID",
                                      "PERSIA_METRICS_ENABLED",
                                      "REPLICA_INDEX",
                                      "RANK",
                                      "LOCAL_WORLD_SIZE",
                                      "PERSIA_METRICS_RANK_OF_PARENT",
                                      "HOROVOD_RANK",
                                      "OMPI_COMM_WORLD_RANK",
                                      "PMIX_RANK",
                                      "PMI_RANK",
                                      "MV2_COMM_WORLD_RANK",
                                      "SLURM_PROCID",
                                      "ROLE_NAME",
                                      "TORCHELASTIC_RUN_ID",
                                      "TORCHELASTIC_RESTART_COUNT",
                                      "PERSIA_METRICS_SEGMENT_BYTES"};

void PrepareEnvironment(const std::string& directory) {
  for (const char* name : kVariables) {
    unsetenv(name);
  }
  if (!directory.empty()) {
    setenv("PERSIA_METRICS_DIR", directory.c_str(), 1);
  }
}

// 3: the body threw.
int RunBody(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    fprintf(stderr, "worker: %s\n", e.what());
    return 3;
  }
  return ::testing::Test::HasFailure() ? 4 : 0;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

int WorkerTest::Outcome::LinesOfErrorOutput() const { return static_cast<int>(std::ranges::count(error_output, '\n')); }

WorkerTest::Outcome WorkerTest::Run(const std::function<void()>& body, bool opted_in) {
  int fds[2];
  if (pipe(fds) != 0) {
    throw std::runtime_error("pipe");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], STDERR_FILENO);
    close(fds[0]);
    close(fds[1]);
    PrepareEnvironment(opted_in ? directory() : "");
    _exit(RunBody(body));
  }
  close(fds[1]);
  Outcome outcome;
  outcome.error_output = ReadAll(fds[0]);
  close(fds[0]);
  waitpid(pid, &outcome.wait_status, 0);
  return outcome;
}

WorkerTest::Outcome WorkerTest::RunWorker(const std::function<void()>& body) { return Run(body, true); }
WorkerTest::Outcome WorkerTest::RunBareWorker(const std::function<void()>& body) { return Run(body, false); }

SegmentView WorkerTest::OnlySegment() const {
  const auto paths = SegmentsIn(directory());
  if (paths.size() != 1) {
    throw std::runtime_error(std::to_string(paths.size()) + " segments, not one, in " + directory());
  }
  return ReadSegment(paths[0]);
}

SegmentView WorkerTest::SegmentOf(const std::function<void()>& body) {
  const Outcome outcome = RunWorker(body);
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  return OnlySegment();
}

WorkerTest::Live::Live(WorkerTest& test, const std::function<void()>& body, const std::function<void()>& at_end) {
  int ready[2];
  int go[2];
  if (pipe(ready) != 0 || pipe(go) != 0) {
    throw std::runtime_error("pipe");
  }
  pid_ = fork();
  if (pid_ == 0) {
    close(ready[0]);
    close(go[1]);
    PrepareEnvironment(test.directory());
    const int result = RunBody(body);
    char byte = 'r';
    // The pipes may have been closed by the body on purpose; the test then sees the end of file.
    [[maybe_unused]] ssize_t n = write(ready[1], &byte, 1);
    close(ready[1]);
    n = read(go[0], &byte, 1);
    _exit(result != 0 ? result : RunBody(at_end));
  }
  close(ready[1]);
  close(go[0]);
  go_fd_ = go[1];
  ReadAll(ready[0]);
  close(ready[0]);
}

WorkerTest::Live::~Live() {
  if (pid_ > 0) {
    Kill();
  }
}

void WorkerTest::Live::Finish() {
  // A byte, not an end of file: other workers hold copies of this end.
  [[maybe_unused]] const ssize_t n = write(go_fd_, "g", 1);
  close(go_fd_);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  EXPECT_EQ(status, 0);
}

void WorkerTest::Live::Kill() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  close(go_fd_);
}

}  // namespace persia::metrics::tests
