#include "job/test_job.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "persia/metrics/metrics.h"

namespace persia::agent {

int TestJob::Segments() const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    count += entry.path().extension() == ".seg" ? 1 : 0;
  }
  return count;
}

TestJob::Worker::Worker(const TestJob& job, int batches, const std::string& run_id) {
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
    pid_ = -1;
  }
}

}  // namespace persia::agent
