// A job's directory with segments in it, and a source that collects them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "segment/segment_builder.h"
#include "temporary_directory.h"
#include "workers/segment_source.h"

namespace persia::agent::testing {

// The values of a snapshot, as text, by `name{label="value"}@instance/role`; of the identity rep_0/worker the part from '@' on
// is left out, so are the dropped counts that are 0. A histogram is `sum: bucket bucket ...`, a gauge that is not shown is
// "absent".
std::map<std::string, std::string> Flatten(const Snapshot& snapshot);

// Holds the lock that tells a living writer, as the library does.
class WriterLock {
 public:
  explicit WriterLock(const std::string& path);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  int fd_;
};

class JobDirectoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] const std::string& directory() const { return directory_.path(); }
  [[nodiscard]] std::string PathOf(const std::string& name) const { return directory_ / name; }

  // Writes the segment, also over an existing file.
  void Put(const std::string& name, const SegmentBuilder& segment) const { segment.WriteTo(PathOf(name)); }
  void PutText(const std::string& name, const std::string& bytes) const;
  void Remove(const std::string& name) const;

  SegmentSource& source();
  // Ends the source, with its threads: a process that is forked from one with threads may not start any under ThreadSanitizer.
  void EndSource() { source_.reset(); }
  // Starts over with these options; directory and job are filled in.
  void UseOptions(SegmentSourceOptions options);
  std::shared_ptr<const Snapshot> Collect();
  std::map<std::string, std::string> CollectFlat() { return Flatten(*Collect()); }
  // The messages for the log.
  std::vector<std::string> Diagnosed();

  std::shared_ptr<const Naming> naming_;  // of the next UseOptions

 private:
  const TemporaryDirectory directory_{"/dev/shm"};
  std::unique_ptr<SegmentSource> source_;
};

}  // namespace persia::agent::testing
