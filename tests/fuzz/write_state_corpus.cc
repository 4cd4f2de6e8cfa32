// Writes the first inputs of fuzz_state into a directory: what is left of processes of each kind.
//
//   write_state_corpus tests/fuzz/corpus/fuzz_state
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "ledger/retired_codec.h"
#include "segment/segment_builder.h"
#include "segment/segment_reader.h"

namespace {

using namespace persia::agent;
using persia::agent::testing::SegmentBuilder;

const CollectTime kNow{1, std::chrono::steady_clock::time_point(std::chrono::hours(1)),
                       std::chrono::system_clock::time_point(std::chrono::hours(500'000))};

void Fold(SegmentBuilder& segment, RetiredProcesses& processes) {
  const int fd = memfd_create("segment", MFD_CLOEXEC);
  SegmentProblem problem;
  if (write(fd, segment.image().data(), segment.image().size()) < 0) {
    return;
  }
  const auto reader = SegmentReader::FromDescriptor(fd, {geteuid(), {}, 1 << 24}, problem);
  if (reader == nullptr || !reader->Read(1, kNow.wall, problem)) {
    std::fprintf(stderr, "%s\n", problem.text.c_str());
    return;
  }
  processes.Fold(MeasurementsOf(*reader), {.pid = 7, .start_ticks = 9}, kNow);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const double bounds[] = {0.5, 2};
  const uint64_t buckets[] = {1, 2, 3};
  RetiredState kinds{
      .run_id = "r", .folded = {"0123456789abcdef"}, .ordinals = {{"fedcba9876543210", 1}}, .processes = RetiredProcesses({})};
  for (const int replica : {0, 1, 1}) {
    SegmentBuilder segment;
    segment.Identity({.job = "j", .run_id = "r", .role = "worker", .replica = replica, .labels = {{"zone", "a"}}});
    segment.Counter("g", "c", {{"l", "v"}}, 3, 0.1);
    segment.Gauge("g", "x", {}, 2.5, GaugePolicy::kEach);
    segment.Gauge("g", "y", {}, 2.5, GaugePolicy::kSum);
    segment.Histogram("g", "h", {}, bounds, 4e-30, buckets);
    segment.Event("t", "e", 1000, 2, 0.5, bounds, buckets);
    segment.Stream("g", "s", {}, 2, {{0, 1}, {84, 2}, {161, 1}}, 5, -1, 1, 2);
    Fold(segment, kinds.processes);
  }
  const RetiredState empty{.run_id = "r", .processes = RetiredProcesses({})};
  const std::string directory = std::string(argv[1]) + "/";
  std::ofstream(directory + "kinds", std::ios::binary) << EncodeRetired(kinds, kNow);
  std::ofstream(directory + "empty", std::ios::binary) << EncodeRetired(empty, kNow);
  return 0;
}
