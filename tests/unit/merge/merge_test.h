// Segments of a job's processes, and their merged values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workers/job_directory_test.h"

namespace persia::agent::testing {

using Flat = std::map<std::string, std::string>;

class MergeTest : public JobDirectoryTest {
 protected:
  // A living process: its segment, and the segment's file.
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

  // Collects the merged values of these processes.
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
