// Runs a piece of a program as a worker process, and gives the test access to its segment and output.
//
// The library's state is a process's, so each case runs in a forked child of a test that never touches a metric itself: that is
// a fresh process to the library.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "segment_view.h"
#include "temporary_directory.h"

namespace persia::metrics::tests {

class WorkerTest : public ::testing::Test {
 protected:
  // A worker's text on stderr, and its wait status, as of waitpid.
  struct Outcome {
    int wait_status = 0;
    std::string error_output;
    [[nodiscard]] int LinesOfErrorOutput() const;
  };

  // Runs `body` in a child with PERSIA_METRICS_DIR set to directory(), and waits for its end.
  Outcome RunWorker(const std::function<void()>& body);
  // The same without variables of metrics in the environment.
  Outcome RunBareWorker(const std::function<void()>& body);
  // Runs `body`, which must succeed, and reads the one segment that it left.
  SegmentView SegmentOf(const std::function<void()>& body);

  // A worker that is alive during the test: it runs `body`, reports that, and waits for its end.
  class Live {
   public:
    Live(
        WorkerTest& test, const std::function<void()>& body, const std::function<void()>& at_end = [] {});
    ~Live();
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;
    void Finish();  // lets it run `at_end` and exit, and waits
    void Kill();    // SIGKILL, and waits
    [[nodiscard]] pid_t pid() const { return pid_; }

   private:
    pid_t pid_ = -1;
    int go_fd_ = -1;
  };

  [[nodiscard]] const std::string& directory() const { return directory_.path(); }
  // The only segment in the directory.
  [[nodiscard]] SegmentView OnlySegment() const;

 private:
  Outcome Run(const std::function<void()>& body, bool opted_in);
  const TemporaryDirectory directory_{"/dev/shm"};
};

}  // namespace persia::metrics::tests
