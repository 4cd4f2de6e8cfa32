// Writes and reads one segment.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "segment/segment_reader.h"
#include "workers/job_directory_test.h"

namespace persia::agent::testing {

class SegmentReaderTest : public JobDirectoryTest {
 protected:
  // Opens and reads the file of that name; null: see problem().
  SegmentReader* Open(const std::string& name = "a.seg") {
    const int directory_fd = open(directory().c_str(), O_RDONLY | O_DIRECTORY);
    reader_ = SegmentReader::Open(directory_fd, name.c_str(), access_, problem_);
    close(directory_fd);
    if (reader_ != nullptr && !Read()) {
      reader_.reset();
    }
    return reader_.get();
  }
  SegmentReader* Open(const SegmentBuilder& segment) {
    Remove("a.seg");
    Put("a.seg", segment);
    return Open();
  }
  bool Read(uint64_t clocks_until = 0) { return reader_->Read(++tick_, {}, problem_, clocks_until); }

  [[nodiscard]] const SegmentValues& values() const { return reader_->values(); }
  [[nodiscard]] const SegmentSeries& series(size_t i) const { return reader_->series()[i]; }
  [[nodiscard]] uint64_t Whole(size_t i) const { return values().wholes[series(i).whole]; }
  [[nodiscard]] std::vector<double> Terms(size_t i) const {
    std::vector<double> terms;
    values().AppendTerms(series(i).real, terms);
    std::sort(terms.begin(), terms.end());
    return terms;
  }
  [[nodiscard]] uint64_t Common(size_t i) const { return values().commons[series(i).common]; }

  SegmentAccess access_{geteuid(), std::nullopt, 1 << 30};
  SegmentProblem problem_;
  std::unique_ptr<SegmentReader> reader_;
  uint64_t tick_ = 0;
};

}  // namespace persia::agent::testing
