#include "job/test_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "persia/metrics/metrics.h"

namespace persia::agent {
namespace {

bool IsLocked(const std::filesystem::path& segment) {
  const int fd = open(segment.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool is_locked = fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  close(fd);
  return is_locked;
}

// The kernel drops the lock of a segment with the map of the process, which it keeps, also after waitpid, as long as a reader
// of the process's /proc/PID/smaps_rollup is in the middle of it. The agent has such a reader.
void AwaitUnlocked(const std::filesystem::path& directory, pid_t pid) {
  const std::string prefix = std::to_string(pid) + "-";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    while (IsLocked(entry.path())) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << entry.path() << " is still locked, 30 s after its process ended";
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace

int TestJob::Segments() const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    count += entry.path().extension() == ".seg" ? 1 : 0;
  }
  return count;
}

TestJob::Worker::Worker(const TestJob& job, int batches, const std::string& run_id) : directory_(job.directory()) {
  int life[2];
  int ready[2];
  if (pipe2(life, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0 || (pid_ = fork()) < 0) {
    std::abort();
  }
  char byte = 0;
  if (pid_ == 0) {
    close(life[1]);
    setenv("PERSIA_METRICS_DIR", job.directory().c_str(), 1);
    setenv("PERSIA_RUN_ID", run_id.c_str(), 1);
    metrics::Init({.job_name = "a job", .role = "trainer", .replica = 1});
    metrics::Counter("my_app", "batches", {.help = "Batches trained."}).Increment(batches);
    const bool told = write(ready[1], &byte, 1) == 1 && read(life[0], &byte, 1) >= 0;
    _exit(told ? 0 : 1);
  }
  close(life[0]);
  close(ready[1]);
  life_ = life[1];
  if (read(ready[0], &byte, 1) != 1) {
    std::abort();
  }
  close(ready[0]);
}

TestJob::Worker::~Worker() { End(); }

void TestJob::Worker::End() {
  if (pid_ > 0) {
    // Told, since a worker that was forked later holds this end of the pipe too.
    const char byte = 0;
    if (write(life_, &byte, 1) != 1) {
      std::abort();
    }
    close(life_);
    waitpid(pid_, nullptr, 0);
    std::error_code none;
    if (std::filesystem::exists(directory_, none)) AwaitUnlocked(directory_, pid_);
    pid_ = -1;
  }
}

}  // namespace persia::agent
