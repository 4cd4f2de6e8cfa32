// A segment of any bytes is read and merged, or refused with a reason; read once more after a change, too.
//
// The input: two bytes that select the end of the file and another change at the second read, and the file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "merge/merge.h"
#include "naming/naming.h"
#include "segment/segment_reader.h"

namespace {

using persia::agent::Diagnostics;
using persia::agent::Merger;
using persia::agent::PlainNaming;
using persia::agent::SegmentProblem;
using persia::agent::SegmentReader;
using persia::agent::Snapshot;

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Shows streams as each type in turn.
class InTurn : public PlainNaming {
 public:
  [[nodiscard]] std::shared_ptr<const persia::agent::Exposed> Expose(const persia::agent::SourceMetric& metric) const override {
    using persia::agent::MetricType;
    constexpr MetricType kTypes[] = {MetricType::kGauge, MetricType::kCounter, MetricType::kHistogram, MetricType::kSummary};
    persia::agent::Exposed exposed{
        .name = PlainName(metric), .type = kTypes[turn % 4], .bounds = {0.25, 1, 4}, .quantiles = {0.5, 0.9}};
    return std::make_shared<const persia::agent::Exposed>(exposed);
  }
  uint64_t turn = 0;
};

void Check(const Snapshot& snapshot) {
  size_t values = 0;
  for (const auto& family : snapshot.layout->families) {
    for (const auto& series : family.series) {
      Require(series.first_value == values && series.identity < snapshot.layout->identities.size());
      values += family.ValuesPerSeries();
    }
  }
  Require(values == snapshot.values.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const uint8_t end = data[0];
  const uint8_t change = data[1];
  data += 2;
  size -= 2;
  const int fd = memfd_create("segment", MFD_CLOEXEC);
  Require(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size));

  SegmentProblem problem;
  // A low limit: segments within it are read; this target does not test large memory.
  const auto reader = SegmentReader::FromDescriptor(dup(fd), {geteuid(), {}, 1 << 24}, problem);
  Require(reader != nullptr || !problem.text.empty());
  InTurn naming;
  naming.turn = change;
  Diagnostics diagnostics;
  Merger merger({.job = "job", .ip_addr = "127.0.0.1"}, naming, diagnostics);
  for (uint64_t tick = 1; reader != nullptr && tick <= 2; ++tick) {
    problem = {};
    Require(reader->Read(tick, {}, problem) || !problem.text.empty());
    const persia::agent::Measurements segments[] = {MeasurementsOf(*reader)};
    Check(*merger.Merge(segments, {}, {}));
    ++naming.turn;
    merger.SetNaming(naming);
    std::vector<persia::agent::JobEvent> events;
    reader->ReadEvents(reader->WriterLives(), events);
    // Counts, records and cells change under the reader, and pages go.
    const uint8_t flipped[] = {static_cast<uint8_t>(data[size / 2] ^ change)};
    const size_t at = size * change / 256;
    Require(pwrite(fd, flipped, 1, static_cast<off_t>(at)) == 1);
    Require(ftruncate(fd, static_cast<off_t>(size * std::min<size_t>(end + 1, 256) / 256)) == 0);
  }
  close(fd);
  return 0;
}
