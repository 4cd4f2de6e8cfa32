// Writes the first inputs of fuzz_segment into a directory: small segments that hold each kind, laid out as tightly as the
// format allows, so that little of a fuzzer's work goes into padding. Writes large ones that must stay cheap into another.
//
//   write_segment_corpus tests/fuzz/corpus/fuzz_segment tests/fuzz/hostile/fuzz_segment
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "segment/segment_builder.h"

namespace {

using persia::agent::testing::SegmentBuilder;
using persia::agent::testing::SegmentPlaces;
namespace segment = persia::metrics::segment;

constexpr SegmentPlaces kTight = {.max_bytes = 65536,
                                  .descriptors_offset = 296,
                                  .descriptors_capacity = 704,
                                  .directory_offset = 1000,
                                  .directory_capacity = 3,
                                  .chunks_offset = 1024};

// With the two bytes of the fuzz target in front: the file keeps its length, nothing changes.
bool Write(const std::string& path, SegmentBuilder& made) {
  std::ofstream file(path, std::ios::binary);
  file.write("\xff\0", 2);
  file << made.image();
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DIRECTORY HOSTILE_DIRECTORY\n", argv[0]);
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/";
  const std::string hostile_directory = std::string(argv[2]) + "/";
  const double bounds[] = {0.5, 2};
  const uint64_t buckets[] = {1, 2, 3};

  SegmentBuilder kinds(kTight);
  kinds.Identity({.job = "j", .run_id = "r", .role = "worker", .replica = 1, .labels = {{"zone", "a"}}});
  const uint32_t counter = kinds.Counter("g", "c", {{"l", "v"}}, 3, 0.5);
  kinds.Gauge("g", "x", {}, 2.5);
  kinds.Histogram("g", "h", {}, bounds, 4, buckets);
  kinds.Event("t", "e", 1000, 2, 0.5, bounds, buckets);

  SegmentBuilder streams(kTight);
  streams.Stream("g", "s", {{"l", "v"}}, 2, {{0, 1}, {84, 2}, {161, 1}}, 5, -1, 1, 2);

  SegmentBuilder lanes(kTight);
  const uint32_t lane_counter = lanes.Counter("g", "c", {}, 3, 0.5);
  lanes.Set(lane_counter, 4, 1);
  lanes.SetDouble(lane_counter + 1, 0.25, 1);

  SegmentBuilder clashes(kTight);
  clashes.Identity({.role = "worker"});
  clashes.Counter("a", "b_c", {{"x.y", "1"}}, 1);
  clashes.Series(0, {{"x_y", "1"}});
  clashes.Counter("a_b", "c", {}, 2);
  clashes.Gauge("a", "h_sum", {}, 3, persia::agent::GaugePolicy::kEach);
  clashes.Histogram("a", "h", {}, bounds, 1, buckets);

  SegmentBuilder unknown(kTight);
  unknown.Record(9, "later");
  unknown.Series(unknown.Family(segment::Kind::kStream, "g", "s"));
  unknown.Set(counter, 1, 2);

  // Labels of a process and series, as many as fit: no cost may grow by their product.
  SegmentBuilder hostile({.max_bytes = 1 << 17,
                          .descriptors_offset = 296,
                          .descriptors_capacity = 59'984,
                          .directory_offset = 60'280,
                          .directory_capacity = 4,
                          .chunks_offset = 60'312});
  persia::agent::SegmentIdentity identity{.role = "worker"};
  for (int i = 0; i < 1000; ++i) identity.labels.emplace_back("l" + std::to_string(i), "v");
  hostile.Identity(identity);
  const uint32_t family = hostile.Family(segment::Kind::kGauge, "g", "x");
  for (int i = 0; i < 1000; ++i) hostile.SetDouble(hostile.Series(family, {{"s", std::to_string(i)}}), 1);

  const bool written = Write(directory + "kinds", kinds) && Write(directory + "lanes", lanes) &&
                       Write(directory + "clashes", clashes) && Write(directory + "streams", streams) &&
                       Write(directory + "unknown", unknown) && Write(hostile_directory + "labels_and_series", hostile);
  if (!written) {
    std::fprintf(stderr, "cannot write into %s and %s; do they exist?\n", argv[1], argv[2]);
  }
  return written ? 0 : 1;
}
