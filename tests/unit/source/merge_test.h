// Processes of a job, made by hand, and what they show together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job_directory_test.h"

namespace persia::agent::testing {

using Flat = std::map<std::string, std::string>;

class MergeTest : public JobDirectoryTest {
 protected:
  // A living process of the job: its segment, and the file that it is in.
  struct Process {
    explicit Process(const MergeTest& test, const SegmentIdentity& identity = {.role = "worker"})
        : test_(test), name_(std::to_string(test.processes_++) + ".seg") {
      segment.Identity(identity);
    }
    void Put() {
      test_.JobDirectoryTest::Put(name_, segment);
      if (!lock_) {
        lock_.emplace(test_.PathOf(name_));
      }
    }

    SegmentBuilder segment;

   private:
    const MergeTest& test_;
    const std::string name_;
    std::optional<WriterLock> lock_;
  };

  // Collects what these processes show.
  Flat Merged(const std::vector<Process*>& processes) {
    for (Process* process : processes) {
      process->Put();
    }
    return CollectFlat();
  }

 private:
  mutable int processes_ = 0;
};

}  // namespace persia::agent::testing
