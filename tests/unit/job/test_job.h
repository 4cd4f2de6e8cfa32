// A directory of a job, and workers in it: real processes that use the real library.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {

class TestJob {
 public:
  TestJob() = default;
  TestJob(const TestJob&) = delete;
  TestJob& operator=(const TestJob&) = delete;

  // The job's directory, which is not made yet.
  [[nodiscard]] std::string directory() const { return root_ / "job"; }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  // A worker of one run that has counted (my_app, batches) and lives until it is told to end, or this object ends.
  // REQUIRES: the calling process has one thread.
  class Worker {
   public:
    Worker(const TestJob& job, int batches, const std::string& run_id);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // Returns once the agent can see that it has ended.
    void End();

   private:
    const std::filesystem::path directory_;
    pid_t pid_ = -1;
    int life_ = -1;  // written to, or closed: the worker ends
  };

  // How many segments are in the directory.
  [[nodiscard]] int Segments() const;

 private:
  const TemporaryDirectory temporary_{"/dev/shm"};
  const std::filesystem::path root_ = temporary_.path();
};

}  // namespace persia::agent
