#include "segment_writer.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <type_traits>
#include <vector>

#include "persia/metrics/internal/language.h"

namespace persia::metrics {
namespace {

using segment::ChunkEntry;
using segment::Header;
using segment::kChunkBytes;
using segment::kPageBytes;

// Relaxed: a binding sets it before there is a metric.
constinit std::atomic<const char*> language = "c++";
constexpr uint64_t kDefaultBytes = 16ULL << 20;
constexpr uint64_t kLeastBytes = 256ULL << 10;
constexpr uint64_t kMostBytes = 1ULL << 30;
constexpr uint64_t kMostRingSlots = 256;
// How much is allocated at a time: a call to the kernel a step, and the memory of an idle process.
constexpr uint64_t kDescriptorStep = 16 << 10;
constexpr uint64_t kDirectoryStep = kPageBytes;
constexpr uint64_t kChunkStep = 8 * kChunkBytes;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

template <class T>
void Append(std::string* out, const T& plain) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->append(reinterpret_cast<const char*>(&plain), sizeof plain);
}

void AppendString(std::string* out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

void AppendLabels(std::string* out, const LabelSet& labels) {
  for (const auto& [name, value] : labels) {
    AppendString(out, name);
    AppendString(out, value);
  }
}

// Field 22 of /proc/self/stat. The command, field 2, may contain anything, so count from its closing parenthesis.
uint64_t StartTicks() {
  std::ifstream stat("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  const size_t close = text.rfind(')');
  size_t at = close == std::string::npos ? text.size() : close + 1;
  for (int field = 3; field <= 22 && at < text.size(); ++field) {
    at = text.find(' ', at);
    at = at == std::string::npos ? text.size() : at + 1;
  }
  return std::strtoull(text.c_str() + std::min(at, text.size()), nullptr, 10);
}

uint64_t PidNamespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

void FillRandom(uint8_t (&id)[16]) {
  if (getrandom(id, sizeof id, GRND_NONBLOCK) == sizeof id) {
    return;
  }
  // No entropy yet at boot: unique on this host is enough.
  const uint64_t parts[2] = {static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                             static_cast<uint64_t>(getpid())};
  std::memcpy(id, parts, sizeof id);
}

std::string FileName(const Header& header) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string name = std::to_string(header.pid) + "-";
  for (int i = 0; i < 8; ++i) {
    name += kHex[header.segment_id[i] >> 4];
    name += kHex[header.segment_id[i] & 15];
  }
  return name + segment::kFileSuffix;
}

}  // namespace

void internal::SetLanguage(const char* name) noexcept { language.store(name, std::memory_order_relaxed); }

bool SegmentWriter::Create(uint64_t requested_bytes) {
  const uint64_t wanted = requested_bytes == 0 ? kDefaultBytes : requested_bytes;
  const uint64_t max_bytes = RoundUp(std::clamp(wanted, kLeastBytes, kMostBytes), kPageBytes);
  if (!memory_.Reserve(max_bytes)) {
    return false;
  }
  header_ = new (memory_.base()) Header{};
  std::memcpy(header_->magic, segment::kMagic, sizeof header_->magic);
  header_->major = segment::kMajor;
  header_->minor = segment::kMinor;
  header_->header_bytes = sizeof(Header);
  FillRandom(header_->segment_id);
  header_->max_bytes = max_bytes;
  header_->pid = static_cast<uint32_t>(getpid());
  header_->pid_namespace = PidNamespace();
  header_->start_ticks = StartTicks();
  header_->birth_unix_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  // A quarter for descriptors, so that lanes cannot starve new series.
  header_->descriptors_offset = kPageBytes;
  header_->descriptors_capacity = RoundUp(max_bytes / 4, kPageBytes);
  header_->directory_offset = header_->descriptors_offset + header_->descriptors_capacity;
  header_->directory_capacity = max_bytes / kChunkBytes;
  header_->ring_offset = RoundUp(header_->directory_offset + header_->directory_capacity * sizeof(ChunkEntry), kPageBytes);
  header_->ring_slots = std::min(kMostRingSlots, max_bytes / 16 / segment::kEventSlotBytes);
  header_->chunks_offset = RoundUp(header_->ring_offset + header_->ring_slots * segment::kEventSlotBytes, kPageBytes);
  ring_slots_ = header_->ring_slots;
  return true;
}

bool SegmentWriter::Export(int directory_fd, const std::string& path, const Identity& identity, std::string* error) {
  // Before the file gets its name: no reader sees a segment of nobody.
  if (!AddIdentity(identity) || !AddWriter()) {
    *error = "no room for this process's identity; raise PERSIA_METRICS_SEGMENT_BYTES";
    return false;
  }
  std::vector<Extent> in_use = {{0, kPageBytes}};
  const auto use = [&](uint64_t offset, uint64_t bytes) {
    if (bytes > 0) {
      in_use.push_back({offset, bytes});
    }
  };
  use(header_->descriptors_offset, descriptors_allocated_);
  use(header_->directory_offset, directory_allocated_);
  use(header_->chunks_offset, chunks_allocated_);
  if (ring_ != nullptr) {
    use(header_->ring_offset, ring_slots_ * segment::kEventSlotBytes);
  }
  return memory_.MoveToFile(directory_fd, path, in_use, error) && memory_.Link(FileName(*header_), error);
}

bool SegmentWriter::EnsureAllocated(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t step, uint64_t* allocated) {
  if (wanted <= *allocated) {
    return true;
  }
  if (wanted > capacity) {
    full_reason_ = segment::Drop::kSegmentFull;
    return false;
  }
  const uint64_t grown = std::min(RoundUp(wanted, step), capacity);
  if (memory_.Grow(offset + *allocated, grown - *allocated) != Growth::kGrown) {
    full_reason_ = segment::Drop::kFilesystemFull;
    return false;
  }
  *allocated = grown;
  return true;
}

bool SegmentWriter::AppendRecord(segment::RecordType type, const std::string& body) {
  const uint64_t bytes = RoundUp(sizeof(segment::RecordHeader) + body.size(), 8);
  const uint64_t used = header_->descriptors_used.load(std::memory_order_relaxed);
  if (!EnsureAllocated(header_->descriptors_offset, header_->descriptors_capacity, used + bytes, kDescriptorStep,
                       &descriptors_allocated_)) {
    return false;
  }
  const segment::RecordHeader record{static_cast<uint32_t>(bytes), static_cast<uint16_t>(type), 0};
  std::byte* at = memory_.base() + header_->descriptors_offset + used;
  std::memcpy(at, &record, sizeof record);
  std::memcpy(at + sizeof record, body.data(), body.size());
  // Pairs with the reader's acquire: whoever sees the new size sees the record.
  header_->descriptors_used.store(used + bytes, std::memory_order_release);
  return true;
}

bool SegmentWriter::AddIdentity(const Identity& identity) {
  std::string body;
  Append(&body,
         segment::IdentityFixed{identity.replica, identity.restart_count, static_cast<uint32_t>(identity.labels.size()), 0});
  AppendString(&body, identity.job);
  AppendString(&body, identity.run_id);
  AppendString(&body, identity.role);
  AppendLabels(&body, identity.labels);
  return AppendRecord(segment::RecordType::kIdentity, body);
}

bool SegmentWriter::AddWriter() {
  std::string body;
  AppendString(&body, language.load(std::memory_order_relaxed));
  AppendString(&body, PERSIA_METRICS_VERSION);
  return AppendRecord(segment::RecordType::kWriter, body);
}

bool SegmentWriter::AddFamily(const FamilyRecord& family) {
  std::string body;
  Append(&body, segment::FamilyFixed{static_cast<uint8_t>(family.kind), family.gauge_policy, 0,
                                     static_cast<uint32_t>(family.bounds.size())});
  for (const double bound : family.bounds) {
    Append(&body, bound);
  }
  AppendString(&body, family.group);
  AppendString(&body, family.name);
  AppendString(&body, family.help);
  AppendString(&body, family.unit);
  return AppendRecord(segment::RecordType::kFamily, body);
}

bool SegmentWriter::AddSeries(uint32_t family, uint32_t slot, const LabelSet& labels) {
  std::string body;
  Append(&body, segment::SeriesFixed{family, slot, static_cast<uint32_t>(labels.size()), 0});
  AppendLabels(&body, labels);
  return AppendRecord(segment::RecordType::kSeries, body);
}

std::atomic<uint64_t>* SegmentWriter::AddChunk(uint32_t lane, uint32_t range) {
  const uint64_t used = header_->chunks_used.load(std::memory_order_relaxed);
  const uint64_t chunk_capacity = (memory_.max_bytes() - header_->chunks_offset) / kChunkBytes * kChunkBytes;
  if (used >= header_->directory_capacity ||
      !EnsureAllocated(header_->chunks_offset, chunk_capacity, (used + 1) * kChunkBytes, kChunkStep, &chunks_allocated_) ||
      !EnsureAllocated(header_->directory_offset, header_->directory_capacity * sizeof(ChunkEntry),
                       (used + 1) * sizeof(ChunkEntry), kDirectoryStep, &directory_allocated_)) {
    return nullptr;
  }
  auto* directory = reinterpret_cast<ChunkEntry*>(memory_.base() + header_->directory_offset);
  directory[used] = ChunkEntry{lane, range};
  // Pairs with the reader's acquire: whoever sees the new count sees the entry.
  header_->chunks_used.store(used + 1, std::memory_order_release);
  return reinterpret_cast<std::atomic<uint64_t>*>(memory_.base() + header_->chunks_offset + used * kChunkBytes);
}

segment::EventSlot* SegmentWriter::EnsureRing() {
  if (ring_ == nullptr && ring_slots_ > 0) {
    if (memory_.Grow(header_->ring_offset, ring_slots_ * segment::kEventSlotBytes) != Growth::kGrown) {
      full_reason_ = segment::Drop::kFilesystemFull;
      return nullptr;
    }
    ring_ = reinterpret_cast<segment::EventSlot*>(memory_.base() + header_->ring_offset);
  }
  return ring_;
}

void SegmentWriter::ForgetAfterFork() {
  memory_.ForgetAfterFork();
  header_ = nullptr;
  ring_ = nullptr;
  ring_slots_ = 0;
  descriptors_allocated_ = 0;
  directory_allocated_ = 0;
  chunks_allocated_ = 0;
}

}  // namespace persia::metrics
