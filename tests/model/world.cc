#include "world.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "kernel/proc_reader.h"

namespace persia::agent::model {
namespace {

using testing::MemoryJournalFile;
using testing::SegmentBuilder;
using testing::segment::Kind;

uint64_t OffsetOf(uint32_t slot) {
  // The chunks of the common lane follow each other, from range 1 on.
  return testing::SegmentPlaces{}.chunks_offset + (slot - testing::segment::kCellsPerChunk) * sizeof(uint64_t);
}

SegmentKind NewSegment(uint32_t identity, bool large, const std::string& run_id) {
  SegmentBuilder segment({.max_bytes = large ? kLargeSegment : kSmallSegment});
  segment.Identity({.run_id = run_id,
                    .role = "worker",
                    .replica = identity == 0 ? 0 : 1,
                    .labels = identity == 2 ? Labels{{"zone", "b"}} : Labels{}});
  SegmentKind kind;
  kind.counts[0] = OffsetOf(segment.Counter("my_app", "batches", {}, 0));
  const uint32_t rows = segment.Family(Kind::kCounter, "my_app", "rows");
  const uint32_t removed = segment.Series(rows, {{"feat", "a"}});
  kind.counts[kRemovedCount] = OffsetOf(removed);
  kind.removed = segment.RemovedAt(removed);
  kind.counts[3] = OffsetOf(segment.Histogram("my_app", "sizes", {}, std::array{1.0}, 0, {}));
  for (size_t i = 0; i < std::size(kPolicies); ++i) {
    kind.gauges[i] = OffsetOf(segment.UnsetGauge("my_app", std::to_string(i), kPolicies[i]));
  }
  kind.clock = OffsetOf(segment.Series(segment.Family(Kind::kClock, "my_app", "seconds")));
  const uint64_t descriptors = segment.descriptors_used();
  const uint64_t chunks = segment.header().chunks_used;
  segment.BeginChunk();
  kind.counts[kLateCount] = OffsetOf(segment.Series(rows, {{"feat", "b"}}));
  kind.descriptors_with_late = segment.descriptors_used();
  kind.chunks_with_late = segment.header().chunks_used;
  segment.header().descriptors_used = descriptors;
  segment.header().chunks_used = chunks;
  kind.image = segment.image();
  return kind;
}

template <class T>
void Put(std::string& bytes, uint64_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Pages are small, as the state is.
std::string Torn(std::string_view bytes, uint32_t tear) {
  if (tear == 0) return "";
  constexpr size_t kPage = 16;
  std::string left(bytes.substr(0, bytes.size() - bytes.size() * (tear % 4) / 4));
  for (size_t at = 0; at < left.size(); at += kPage) {
    tear = tear * 1664525 + 1013904223;
    if (tear >> 30 == 0) left.replace(at, kPage, std::min(kPage, left.size() - at), '\0');
  }
  return left;
}

uint64_t Nanoseconds(std::chrono::milliseconds time) { return static_cast<uint64_t>(time.count()) * 1'000'000; }

testing::segment::Header& HeaderOf(std::string& bytes) { return *reinterpret_cast<testing::segment::Header*>(bytes.data()); }

}  // namespace

void Process::Toggle(std::chrono::milliseconds now) {
  uint64_t word = 0;
  std::memcpy(&word, bytes->data() + kind->clock, sizeof word);
  const uint64_t at = Nanoseconds(now);
  if (testing::segment::ClockRuns(word)) {
    word = testing::segment::StoppedClock(word, at);
  } else {
    word = testing::segment::StartedClock(word, at);
    Put(*bytes, kind->clock + testing::segment::kClockStart * sizeof word, at);
  }
  Put(*bytes, kind->clock, word);
}

double Process::InPhase(bool whole, std::chrono::milliseconds now) const {
  std::array<uint64_t, testing::segment::kClockStart + 1> cells{};
  std::memcpy(cells.data(), bytes->data() + kind->clock, sizeof cells);
  const uint64_t until = whole ? Nanoseconds(*alive ? now : ended) : cells[testing::segment::kClockStart];
  return testing::segment::SecondsOf(testing::segment::ClockNs(cells[0], until));
}

void Process::End(bool normally, std::chrono::milliseconds now) {
  if (!*alive) return;
  ended = now;
  if (normally) HeaderOf(*bytes).exit = testing::segment::kExitCode;
  died = !normally;
  *alive = false;
}

void Process::Count(size_t what, uint64_t by) {
  log.push_back(log.back());
  const uint64_t count = log.back().counts[what] += by;
  const uint64_t at = kind->counts[what];
  if (what == kLateCount) {
    HeaderOf(*bytes).chunks_used = kind->chunks_with_late;
    HeaderOf(*bytes).descriptors_used = kind->descriptors_with_late;
    Put(*bytes, at + sizeof(double), 0.5 * static_cast<double>(count));
  } else if (what == 3) {
    Put(*bytes, at, 0.5 * static_cast<double>(count));
    Put(*bytes, at + sizeof(double), count);
  } else {
    Put(*bytes, at, count);
  }
}

void Process::Set(double value) {
  log.push_back(log.back());
  log.back().gauge = value;
  for (const uint64_t at : kind->gauges) {
    Put(*bytes, at, value);
  }
}

void Process::Remove() {
  log.push_back(log.back());
  log.back().removed = !log.back().removed;
  Put(*bytes, kind->removed, uint32_t{log.back().removed});
  ++HeaderOf(*bytes).removals;
}

Process& World::Start(uint32_t identity, bool large, const std::string& run_id) {
  const auto [kind, added] = kinds_.try_emplace({identity, large, run_id});
  if (added) kind->second = NewSegment(identity, large, run_id);
  Process process;
  const uint64_t number = processes.size() + 1;
  process.kind = &kind->second;
  process.bytes = std::make_shared<std::string>(process.kind->image);
  auto& header = HeaderOf(*process.bytes);
  std::memcpy(header.segment_id, &number, sizeof number);
  header.pid = static_cast<uint32_t>(number);
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  header.pid_namespace = own_namespace;
  header.birth_unix_ns = number;
  process.identity = identity;
  process.large = large;
  process.name = std::to_string(number) + "-" + HexEncode({reinterpret_cast<const char*>(&number), sizeof number}) + ".seg";
  process.file.inode = number;
  processes.push_back(std::move(process));
  return processes.back();
}

void World::DamageState(uint32_t where, bool cut) {
  if (!disk.bytes || disk.bytes->empty()) return;
  const size_t at = disk.bytes->size() * (where % 64) / 64;
  if (cut) {
    disk.bytes->resize(at);
  } else {
    (*disk.bytes)[at] ^= 0x40;
  }
}

Process* World::Find(const std::string& name) {
  Process& process = processes.at(std::stoul(name) - 1);  // a name begins with the process's number
  return process.name == name && process.in_directory ? &process : nullptr;
}

SegmentDirectory::Listing ModelDirectory::List() {
  world_.Operation();
  Listing listing;
  listing.complete = !world_.no_descriptors;
  if (world_.no_descriptors) {
    listing.error = "no descriptors";
    return listing;
  }
  for (const Process& process : world_.processes) {
    if (process.in_directory) listing.files.push_back({process.name, process.file});
  }
  return listing;
}

std::unique_ptr<SegmentReader> ModelDirectory::Open(const std::string& name, const SegmentAccess& access,
                                                    SegmentProblem& problem) {
  world_.Operation();
  const Process* process = world_.Find(name);
  if (process == nullptr || process->broken || world_.no_descriptors_in_open) {
    problem = {.reason = "access", .text = "it cannot be opened", .is_shortage = world_.no_descriptors_in_open};
    return nullptr;
  }
  const auto writer_lives = [&world = world_, alive = process->alive] {
    world.Operation();
    return *alive;
  };
  return SegmentReader::FromFile(SegmentFile::FromMemory(process->bytes, writer_lives, access, problem));
}

SegmentDirectory::Removal ModelDirectory::Remove(const std::string& name, const FileId& file) {
  world_.Operation();
  if (world_.read_only) return Removal::kFailed;
  Process* process = world_.Find(name);
  if (process != nullptr && process->file.SameInode(file)) {
    process->in_directory = false;
    process->removed = true;
    return Removal::kRemoved;
  }
  return Removal::kGone;
}

bool ModelDirectory::SyncRemovals() {
  world_.Operation();
  return !world_.read_only;
}

std::shared_ptr<JournalFile> StateOf(World& world) {
  return std::make_shared<MemoryJournalFile>(
      world.disk,
      [&world](MemoryJournalFile::Operation operation, size_t bytes) {
        world.Operation();
        const bool writes =
            operation == MemoryJournalFile::Operation::kAppend || operation == MemoryJournalFile::Operation::kReplace;
        return writes && world.disk_full                                                    ? bytes / 2
               : operation == MemoryJournalFile::Operation::kRead && world.state_unreadable ? 0
                                                                                            : bytes;
      },
      [&world](std::string_view bytes) { return Torn(bytes, world.tear); });
}

}  // namespace persia::agent::model
