#include "ledger/sample_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "files/bytes.h"
#include "segment/segment_builder.h"

namespace persia::agent::testing {

CollectTime SampleTime() {
  return {1, std::chrono::steady_clock::time_point(std::chrono::hours(1)),
          std::chrono::system_clock::time_point(std::chrono::hours(500'000))};
}

SampleProcess::SampleProcess(uint64_t counted, size_t more_series, int32_t replica) {
  const double bounds[] = {0.5, 2};
  const uint64_t buckets[] = {1, 2, 3};
  SegmentBuilder segment({.max_bytes = 1 << 20,
                          .descriptors_offset = 4096,
                          .descriptors_capacity = 65536,
                          .directory_offset = 69632,
                          .directory_capacity = 64,
                          .chunks_offset = 73728});
  segment.header().birth_unix_ns = 1'700'000'000'000'000'000 + static_cast<uint64_t>(replica);
  segment.Identity({.job = "j", .run_id = "r", .role = "worker", .replica = replica, .labels = {{"zone", "a"}}});
  segment.Counter("g", "c", {{"l", "v"}}, counted, 0.1);
  segment.Gauge("g", "x", {}, 2.5, GaugePolicy::kEach);
  segment.Histogram("g", "h", {}, bounds, 4e-30, buckets);
  segment.Event("t", "e", 1000, 2, 0.5, bounds, buckets);
  segment.Stream("g", "s", {}, 2, {{0, 1}, {84, 2}, {161, 1}}, 5, -1, 1, 2);
  const uint32_t more = more_series == 0 ? 0 : segment.Family(segment::Kind::kCounter, "g", "more");
  for (size_t i = 0; i < more_series; ++i) {
    segment.Set(segment.Series(more, {{"i", std::to_string(i)}}), 1);
  }
  const std::string id = "0123456789abcde" + std::to_string(replica);
  id.copy(reinterpret_cast<char*>(segment.header().segment_id), sizeof segment.header().segment_id);
  const int fd = memfd_create("segment", MFD_CLOEXEC);
  SegmentProblem problem;
  if (write(fd, segment.image().data(), segment.image().size()) > 0) {
    reader_ = SegmentReader::FromDescriptor(fd, {geteuid(), {}, 1 << 24}, problem);
  }
  if (reader_ == nullptr || !reader_->Read(1, SampleTime().wall, problem)) {
    std::fprintf(stderr, "%s\n", problem.text.c_str());
    std::abort();
  }
}

Measurements SampleProcess::values() const { return MeasurementsOf(*reader_); }

namespace {

// Appends the records of `change` to a ledger of run "r".
template <class Do>
std::string StateAfter(Do change) {
  MemoryDisk disk;
  Diagnostics diagnostics;
  Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk), .saves_living = true, .run_id = "r", .threaded = false},
                diagnostics);
  ledger.Load(SampleTime());
  change(ledger);
  return *disk.bytes;
}

void FoldTwoAndNoteTwo(Ledger& ledger) {
  ledger.Fold(SampleProcess(3, 0, 0).values(), {.id = {.pid = 7, .start_ticks = 9}}, SampleTime());
  ledger.Fold(SampleProcess(4, 0, 1).values(), {.id = {.pid = 8, .start_ticks = 9}}, SampleTime());
  ledger.Note(SampleProcess(5, 0, 2).values(), {.id = {.pid = 9}});
  ledger.Note(SampleProcess(6, 0, 3).values(), {.id = {.pid = 10}});
  ledger.Save(SampleTime());
}

}  // namespace

std::string SampleState() { return StateAfter(FoldTwoAndNoteTwo); }

std::string WholeSampleState() {
  return StateAfter([](Ledger& ledger) {
    FoldTwoAndNoteTwo(ledger);
    ledger.Forget(ledger.FoldedIds().front());
    ledger.Fold(SampleProcess(7, 0, 3).values(), {.id = {.pid = 10}}, SampleTime());
    ledger.SetHealth("how it is");
    ledger.SetSeen(12);
    ledger.SetGoodput("where the time went");
    ledger.Save(SampleTime());
  });
}

std::vector<std::pair<uint16_t, std::string>> SampleRecords() {
  MemoryDisk disk{.bytes = WholeSampleState()};
  MemoryJournalFile file(disk);
  std::string problem;
  const auto content = ReadJournal(file, kStateFormat, /*look=*/true, problem);
  std::vector<std::pair<uint16_t, std::string>> records;
  for (const JournalRecord& record : content.value().records) {
    if (record.tag != static_cast<uint16_t>(StateRecord::kRun)) records.emplace_back(record.tag, record.payload);
  }
  return records;
}

std::unique_ptr<Ledger> Loaded(MemoryDisk& disk, Diagnostics& diagnostics) {
  auto ledger = std::make_unique<Ledger>(
      Ledger::Options{.file = std::make_shared<MemoryJournalFile>(disk), .run_id = "r", .threaded = false}, diagnostics);
  ledger->Load(SampleTime());
  return ledger;
}

std::string StateWith(uint16_t tag, const std::string& payload) {
  std::string records;
  AddRecord(records, static_cast<uint16_t>(StateRecord::kRun), Encode(std::string("r"), uint64_t{0}));
  static const auto kSamples = SampleRecords();
  for (const auto& [before, sample] : kSamples) {
    const bool needs =
        tag == static_cast<uint16_t>(StateRecord::kFold) && before == static_cast<uint16_t>(StateRecord::kValues);
    if (needs) AddRecord(records, before, sample);
  }
  AddRecord(records, tag, payload);
  return JournalCheckpoint(kStateFormat, records);
}

}  // namespace persia::agent::testing
