// The cost of a collection as one dimension of a job grows.
//
//   bench_growth                     prints the names of the dimensions, each with its largest size
//   bench_growth DIMENSION SIZE      prints {"seconds": ..., "peak_bytes": ..., "allocations": ...} of the measured part
//   bench_growth DIMENSION SIZE once as above, from one repetition
//
// The measured part is the function Measured, so that callgrind counts it alone: --toggle-collect=Measured. Bytes and
// allocations are those of operator new, and the same in each run.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "exposed_names.h"
#include "format/scrape_renderer.h"
#include "ledger/retired_processes.h"
#include "merge/merge.h"
#include "merge/ordinals.h"
#include "naming/mapping_rules.h"
#include "segment/segment_builder.h"
#include "segment/segment_reader.h"
#include "workers/segment_source.h"
#include "world.h"

namespace {

size_t live_bytes = 0;
size_t peak_bytes = 0;
size_t allocations = 0;

}  // namespace

void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations;
  live_bytes += malloc_usable_size(memory);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}
void operator delete(void* memory) noexcept {
  live_bytes -= memory == nullptr ? 0 : malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t /*size*/) noexcept { operator delete(memory); }

// Not inlined, and by this name in the symbol table.
extern "C" __attribute__((noinline)) void Measured(const std::function<void()>& part) { part(); }

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using testing::SegmentBuilder;
using testing::SegmentPlaces;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_growth: %s\n", what.c_str());
  std::exit(2);
}

std::string Number(size_t number) { return std::to_string(1'000'000 + number); }

// A segment of about this size, with a ring.
SegmentPlaces PlacesFor(size_t descriptor_bytes, size_t cells) {
  const auto pages = [](size_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  const size_t chunks = 2 + 2 * cells / segment::kCellsPerChunk;
  SegmentPlaces places;
  places.descriptors_capacity = pages(descriptor_bytes);
  places.directory_offset = places.descriptors_offset + places.descriptors_capacity;
  places.directory_capacity = chunks;
  places.chunks_offset = places.directory_offset + pages(chunks * sizeof(segment::ChunkEntry));
  places.max_bytes = places.chunks_offset + chunks * segment::kChunkBytes;
  return places;
}

// A segment in memory that was written, but not read.
class Image {
 public:
  explicit Image(const SegmentBuilder& builder) { builder.WriteTo("/proc/self/fd/" + std::to_string(fd_)); }
  ~Image() { close(fd_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[nodiscard]] std::unique_ptr<SegmentReader> Open() const {
    SegmentProblem problem;
    auto reader = SegmentReader::FromDescriptor(dup(fd_), {geteuid(), {}, 1ULL << 30}, problem);
    if (reader == nullptr) Fail(problem.text);
    return reader;
  }

 private:
  const int fd_ = memfd_create("segment", MFD_CLOEXEC);
};

// The first collection of these segments: all of it, from the bytes to the exposition.
std::function<void()> Collection(std::vector<std::shared_ptr<Image>> images, std::shared_ptr<const Naming> naming) {
  struct State {
    std::vector<std::unique_ptr<SegmentReader>> readers;
    Diagnostics diagnostics;
    std::unique_ptr<Merger> merger;
    TextRenderer renderer;
    std::string text;
  };
  auto state = std::make_shared<State>();
  for (const auto& image : images) state->readers.push_back(image->Open());
  state->merger = std::make_unique<Merger>(IdentityRules{.job = "job"}, *naming, state->diagnostics,
                                           SeriesLimits{.series = 1'000'000, .series_of_instance = 1'000'000});
  return [=] {
    Ordinals ordinals;
    std::vector<Measurements> inputs;
    std::vector<JobEvent> events;
    for (const auto& reader : state->readers) {
      SegmentProblem problem;
      if (!reader->Read(1, {}, problem)) Fail(problem.text);
      reader->ReadEvents(/*writer_lives=*/true, events);
      Measurements input = MeasurementsOf(*reader);
      input.ordinal = ordinals.ReserveLowest(input.identity->rank()).ordinal;
      inputs.push_back(input);
    }
    state->renderer.Render(*state->merger->Merge(inputs, {}, {}), state->text);
    static_cast<void>(images);
    static_cast<void>(naming);
  };
}

std::function<void()> CollectionOf(const SegmentBuilder& segment,
                                   std::shared_ptr<const Naming> naming = std::make_shared<PlainNaming>()) {
  return Collection({std::make_shared<Image>(segment)}, std::move(naming));
}

Labels NumberedLabels(size_t count, const std::string& value) {
  Labels labels;
  for (size_t i = 0; i < count; ++i) labels.emplace_back("l" + Number(i), value);
  return labels;
}

constexpr size_t kFixedSeries = 500;

std::function<void()> Series(size_t size) {
  SegmentBuilder builder(PlacesFor(4096 + 64 * size, size));
  const uint32_t family = builder.Family(Kind::kGauge, "", "m");
  for (size_t i = 0; i < size; ++i) builder.SetDouble(builder.Series(family, {{"l", Number(i)}}), 1);
  return CollectionOf(builder);
}

std::function<void()> LabelsOfSeries(size_t size) {
  SegmentBuilder builder(PlacesFor(4096 + kFixedSeries * (64 + 32 * size), kFixedSeries));
  const uint32_t family = builder.Family(Kind::kGauge, "", "m");
  for (size_t i = 0; i < kFixedSeries; ++i) builder.SetDouble(builder.Series(family, NumberedLabels(size, Number(i))), 1);
  return CollectionOf(builder);
}

// A hostile segment: as many labels of the process as series.
std::function<void()> LabelsOfProcess(size_t size) {
  SegmentBuilder builder(PlacesFor(4096 + 96 * size, size));
  builder.Identity({.role = "worker", .labels = NumberedLabels(size, "v")});
  const uint32_t family = builder.Family(Kind::kGauge, "", "m");
  for (size_t i = 0; i < size; ++i) builder.SetDouble(builder.Series(family, {{"l", Number(i)}}), 1);
  return CollectionOf(builder);
}

// Labels whose names become one for Prometheus.
std::function<void()> LabelsThatCollide(size_t size) {
  auto labels = std::make_shared<Labels>();
  for (size_t i = 0; i < size; ++i) {
    std::string name = "l";
    for (size_t bit = 0; bit < 16; ++bit) name += (i >> bit & 1) != 0 ? '.' : '-';
    labels->emplace_back(std::move(name), "v");
  }
  return [labels] {
    if (metrics::ExposedLabels(*labels).size() != labels->size()) Fail("a label is missing");
  };
}

void AddFamilies(SegmentBuilder& builder, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    builder.SetDouble(builder.Series(builder.Family(Kind::kGauge, "group", "name." + Number(i))), 1);
  }
}

std::function<void()> Families(size_t size) {
  SegmentBuilder builder(PlacesFor(4096 + 128 * size, size));
  AddFamilies(builder, size);
  return CollectionOf(builder);
}

// Of other labels each, and all of one name.
std::function<void()> SeriesThatCollide(size_t size) {
  SegmentBuilder builder(PlacesFor(4096 + 128 * size, size));
  for (size_t i = 0; i < size; ++i) {
    std::string name = "m";
    for (size_t bit = 0; bit < 16; ++bit) name += (i >> bit & 1) != 0 ? '.' : '-';
    builder.SetDouble(builder.Series(builder.Family(Kind::kGauge, "", name)), 1);
  }
  return CollectionOf(builder);
}

std::function<void()> Rules(size_t size) {
  std::vector<MappingRule> rules;
  for (size_t i = 0; i < size; ++i) {
    rules.push_back({.match = "name.*" + Number(i), .name = "renamed_" + Number(i)});
    rules.push_back({.match = "name\\.1[0-9]+" + Number(i) + "$", .regex = true, .name = "matched_" + Number(i)});
  }
  std::vector<RuleProblem> problems;
  SegmentBuilder builder(PlacesFor(65536, 200));
  AddFamilies(builder, 200);
  return CollectionOf(builder, MappingRules::Compile(std::move(rules), {}, problems));
}

std::vector<std::shared_ptr<Image>> Processes(size_t size, const std::function<SegmentIdentity(size_t)>& identity) {
  std::vector<std::shared_ptr<Image>> images;
  for (size_t i = 0; i < size; ++i) {
    SegmentBuilder builder;
    builder.Identity(identity(i));
    builder.Counter("", "c", {{"l", "1"}}, 1, 0.5);
    builder.Gauge("", "g", {}, 1, GaugePolicy::kSum);
    images.push_back(std::make_shared<Image>(builder));
  }
  return images;
}

std::function<void()> ProcessesOfOneInstance(size_t size) {
  return Collection(Processes(size, [](size_t) { return SegmentIdentity{.role = "worker"}; }), std::make_shared<PlainNaming>());
}

std::function<void()> OrdinalsOfOneInstance(size_t size) {
  return [size] {
    Ordinals ordinals;
    for (size_t i = 0; i < size; ++i) {
      if (ordinals.ReserveLowest({"worker", 0}).ordinal != i) Fail("a number is wrong");
    }
  };
}

std::function<void()> Instances(size_t size) {
  return Collection(
      Processes(size, [](size_t i) { return SegmentIdentity{.role = "worker", .replica = static_cast<int32_t>(i)}; }),
      std::make_shared<PlainNaming>());
}

// Processes that end in one tick, each with a label and a gauge of its own.
std::function<void()> EndedProcesses(size_t size) {
  struct State {
    std::vector<SegmentIdentity> identities;
    std::unique_ptr<SegmentReader> reader;
    std::vector<SegmentFamily> families;
    RetiredProcesses retired{{.gauge_ttl = std::chrono::seconds(300)}};
  };
  auto state = std::make_shared<State>();
  for (size_t i = 0; i < size; ++i) state->identities.push_back({.role = "worker", .labels = {{"pid", Number(i)}}});
  SegmentBuilder builder;
  builder.Counter("", "c", {}, 1, 0.5);
  builder.Gauge("", "g", {}, 1, GaugePolicy::kSum);
  state->reader = Image(builder).Open();
  SegmentProblem problem;
  if (!state->reader->Read(1, {}, problem)) Fail(problem.text);
  return [state] {
    const Measurements ended = MeasurementsOf(*state->reader);
    CollectTime now{1, {}, {}};
    for (const SegmentIdentity& identity : state->identities) {
      Measurements input = ended;
      input.identity = &identity;
      state->retired.Fold(input, {}, now);
    }
    now.steady += std::chrono::seconds(301);
    if (state->retired.Inputs(now).size() > state->identities.size()) Fail("too many groups");
  };
}

std::function<void()> Events(size_t size) {
  SegmentPlaces places = PlacesFor(4096, 1);
  const uint64_t ring = places.chunks_offset;
  places.chunks_offset += size * segment::kEventSlotBytes;
  places.max_bytes += size * segment::kEventSlotBytes;
  SegmentBuilder builder(places);
  builder.header().ring_offset = ring;
  builder.header().ring_slots = size;
  builder.header().events_recorded = size;
  for (uint64_t ticket = 0; ticket < size; ++ticket) {
    const std::string text = SegmentBuilder::String("type") + SegmentBuilder::String("event " + Number(ticket));
    const std::string record =
        SegmentBuilder::Plain(2 * ticket + 2) +
        SegmentBuilder::Plain(segment::EventFixed{1, static_cast<uint32_t>(sizeof(segment::EventFixed) + text.size()), 0, 0}) +
        text;
    std::memcpy(builder.image().data() + ring + ticket * segment::kEventSlotBytes, record.data(), record.size());
  }
  return CollectionOf(builder);
}

// An agent starts with this many segments: a quarter of them of processes that have ended, whose counts it moves into its
// state, and a quarter in the state of the agent before, but not there any more.
std::function<void()> Start(size_t size) {
  struct State {
    model::World world;
    std::unique_ptr<SegmentSource> agent;
    void StartAgent() {
      SegmentSourceOptions options;
      options.job = "bench";
      options.run_id = "run";
      options.files = std::make_unique<model::ModelDirectory>(world);
      options.ledger = {.file = model::StateOf(world), .saves_living = true, .run_id = "run", .threaded = false};
      agent = std::make_unique<SegmentSource>(std::move(options));
    }
  };
  const auto state = std::make_shared<State>();
  for (size_t i = 0; i < size; ++i) {
    state->world.Start(0, false, "run");
  }
  state->StartAgent();
  state->agent->Collect();
  for (size_t i = 0; i < size; i += 4) {
    *state->world.processes[i].alive = false;
    state->world.processes[i + 1].in_directory = false;
  }
  state->StartAgent();
  return [state] { state->agent->Collect(); };
}

struct Dimension {
  const char* name;
  size_t cap;
  std::function<void()> (*prepare)(size_t size);
};

constexpr Dimension kDimensions[] = {
    {"series", 1 << 16, Series},
    {"labels", segment::kMaxLabels, LabelsOfSeries},
    {"process_labels", 2048, LabelsOfProcess},
    {"colliding_labels", 4096, LabelsThatCollide},
    {"families", segment::kMaxFamilies, Families},
    {"colliding_series", 1 << 13, SeriesThatCollide},
    {"rules", 4096, Rules},
    {"processes", 4096, ProcessesOfOneInstance},
    {"ordinals", 1 << 14, OrdinalsOfOneInstance},
    {"instances", 4096, Instances},
    {"ended", 1 << 14, EndedProcesses},
    {"events", 1 << 13, Events},
    {"start", 4096, Start},
};

int Measure(const Dimension& dimension, size_t size, bool once) {
  double seconds = 1e9;
  double total = 0;
  size_t peak = 0;
  size_t made = 0;
  for (int repetition = 0; repetition == 0 || (!once && repetition < 200 && (total < 0.3 || repetition < 3)); ++repetition) {
    const std::function<void()> part = dimension.prepare(size);
    const size_t live_before = live_bytes;
    const size_t made_before = allocations;
    peak_bytes = live_bytes;
    const clock_t before = clock();
    Measured(part);
    const double took = static_cast<double>(clock() - before) / CLOCKS_PER_SEC;
    total += took;
    seconds = std::min(seconds, took);
    peak = peak_bytes - live_before;
    made = allocations - made_before;
  }
  std::printf("{\"seconds\": %.9f, \"peak_bytes\": %zu, \"allocations\": %zu}\n", seconds, peak, made);
  return 0;
}

}  // namespace
}  // namespace persia::agent

int main(int argc, char** argv) {
  using persia::agent::Dimension;
  if (argc == 1) {
    for (const Dimension& dimension : persia::agent::kDimensions) std::printf("%s %zu\n", dimension.name, dimension.cap);
    return 0;
  }
  for (const Dimension& dimension : persia::agent::kDimensions) {
    if (argc >= 3 && std::strcmp(argv[1], dimension.name) == 0) {
      return persia::agent::Measure(dimension, std::strtoull(argv[2], nullptr, 10), argc > 3);
    }
  }
  std::fputs("usage: bench_growth [DIMENSION SIZE [once]]\n", stderr);
  return 64;
}
