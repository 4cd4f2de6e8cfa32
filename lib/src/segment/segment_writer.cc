#include "segment_writer.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "descriptor.h"
#include "exit_mark.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/version.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using segment::ChunkEntry;
using segment::Drop;
using segment::Header;
using segment::kChunkBytes;
using segment::kPageBytes;

// Relaxed: a binding sets it before the first metric.
constinit std::atomic<const char*> language = "c++";
constexpr uint64_t kDefaultBytes = 16ULL << 20;
constexpr uint64_t kMinBytes = 256ULL << 10;
constexpr uint64_t kMaxBytes = 1ULL << 30;
constexpr uint64_t kMaxRingSlots = 256;
// Of the descriptors: for the records that are not of families and series.
constexpr uint64_t kForIdentity = 8 << 10;
// Regions grow by these steps. A larger step means fewer system calls, a smaller one less memory for an idle process.
constexpr uint64_t kDescriptorStep = 16 << 10;
constexpr uint64_t kDirectoryStep = kPageBytes;
constexpr uint64_t kChunkStep = 8 * kChunkBytes;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Takes the fields of a record: counts their bytes, or writes them.
class RecordSize {
 public:
  template <class T>
  void Put(const T& /*plain*/) {
    bytes_ += sizeof(T);
  }
  void PutText(std::string_view text) { bytes_ += sizeof(uint32_t) + text.size(); }
  // With the header and the padding.
  [[nodiscard]] uint64_t bytes() const { return RoundUp(sizeof(segment::RecordHeader) + bytes_, 8); }

 private:
  uint64_t bytes_ = 0;
};

class RecordWriter {
 public:
  explicit RecordWriter(std::byte* at) : at_(at) {}
  template <class T>
  void Put(const T& plain) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(at_, &plain, sizeof plain);
    at_ += sizeof plain;
  }
  void PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

 private:
  std::byte* at_;
};

template <class Out>
void PutLabels(Out& out, const LabelSet& labels) {
  for (const auto& [name, value] : labels) {
    out.PutText(name);
    out.PutText(value);
  }
}

template <class Out>
void PutFamily(Out& out, const FamilyRecord& family) {
  out.Put(segment::FamilyFixed{static_cast<uint8_t>(family.kind), family.gauge_policy, family.max_buckets,
                               static_cast<uint32_t>(family.bounds.size())});
  for (const double bound : family.bounds) out.Put(bound);
  for (const std::string_view text : {family.group, family.name, family.help, family.unit}) out.PutText(text);
}

template <class Out>
void PutSeries(Out& out, const SeriesRecord& series) {
  out.Put(
      segment::SeriesFixed{series.family, series.slot, static_cast<uint32_t>(series.labels.size()), series.removed ? 1U : 0U});
  PutLabels(out, series.labels);
}

template <class Out>
void PutIdentity(Out& out, const Identity& identity) {
  out.Put(segment::IdentityFixed{identity.replica, identity.restart_count, static_cast<uint32_t>(identity.labels.size()),
                                 identity.forked ? segment::kForked : 0});
  for (const std::string_view text : {identity.job, identity.run_id, identity.role}) out.PutText(text);
  PutLabels(out, identity.labels);
}

template <class Put>
uint64_t SizeOf(const Put& put) {
  RecordSize size;
  put(size);
  return size.bytes();
}

// Field 22 of /proc/self/stat, counted from the closing parenthesis of field 2, the command, which may contain any characters.
uint64_t StartTicks() {
  const Descriptor stat(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  char buffer[1024];
  const ssize_t size = stat.valid() ? read(stat.get(), buffer, sizeof buffer) : 0;
  std::string_view text(buffer, size > 0 ? static_cast<size_t>(size) : 0);
  text.remove_prefix(std::min(text.rfind(')') + 1, text.size()));
  for (int field = 3; field <= 22; ++field) {
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
    if (text.empty()) return 0;
  }
  uint64_t ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  return ticks;
}

uint64_t PidNamespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

void FillRandom(uint8_t (&id)[16]) {
  if (getrandom(id, sizeof id, GRND_NONBLOCK) == sizeof id) return;
  // The kernel has no entropy yet: an id that is unique on this host is enough.
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

void SegmentWriter::Plan(uint64_t requested_bytes) {
  const uint64_t wanted = requested_bytes == 0 ? kDefaultBytes : requested_bytes;
  Layout& to = layout_;
  to.max_bytes = RoundUp(std::clamp(wanted, kMinBytes, kMaxBytes), kPageBytes);
  // A quarter is reserved for descriptors, so that chunks leave space for new series.
  to.descriptors_capacity = RoundUp(to.max_bytes / 4, kPageBytes);
  to.directory_offset = kPageBytes + to.descriptors_capacity;
  to.directory_capacity = to.max_bytes / kChunkBytes;
  to.ring_offset = RoundUp(to.directory_offset + to.directory_capacity * sizeof(ChunkEntry), kPageBytes);
  to.ring_slots = std::min(kMaxRingSlots, to.max_bytes / 16 / segment::kEventSlotBytes);
  to.chunks_offset = RoundUp(to.ring_offset + to.ring_slots * segment::kEventSlotBytes, kPageBytes);
  to.chunks_capacity = (to.max_bytes - to.chunks_offset) / kChunkBytes;
}

bool SegmentWriter::Fits(uint64_t bytes, uint64_t chunks) const {
  return descriptors_reserved_ + bytes + kForIdentity <= layout_.descriptors_capacity &&
         chunks_reserved_ + chunks <= layout_.chunks_capacity;
}

void SegmentWriter::Reserve(uint64_t bytes, uint64_t chunks) {
  descriptors_reserved_ += bytes;
  chunks_reserved_ += chunks;
}

uint64_t SegmentWriter::BytesOf(const FamilyRecord& family) {
  return SizeOf([&](auto& out) { PutFamily(out, family); });
}

uint64_t SegmentWriter::BytesOf(const SeriesRecord& series) {
  return SizeOf([&](auto& out) { PutSeries(out, series); });
}

bool SegmentWriter::Create(int directory_fd, const std::string& path, const Identity& identity, std::string* error) {
  if (!file_.Create(directory_fd, path, layout_.max_bytes, error)) return false;
  const uint64_t reserved = descriptors_reserved_;
  descriptors_allocated_ = directory_allocated_ = chunks_allocated_ = 0;
  // Before the file gets its name, so that no reader sees a segment without an identity. Each region gets its first step.
  if (!GrowAtFirst() || !AddIdentity(identity) || !AppendExtra(segment::RecordType::kWriter, [](auto& out) {
        out.PutText(language.load(std::memory_order_relaxed));
        out.PutText(PERSIA_METRICS_VERSION_TEXT);
      })) {
    descriptors_reserved_ = reserved;
    file_.Discard();
    *error = "no space for metrics in " + path + ": " + std::string(TextOf(refusal_));
    return false;
  }
  const std::string name = FileName(*header());
  if (!file_.Link(name, error)) {
    descriptors_reserved_ = reserved;
    return false;
  }
  // Relaxed: other threads only add to the dropped counts, which are atomic.
  counts_.store(header(), std::memory_order_relaxed);
  MarkExitIn(&header()->exit);
  return true;
}

bool SegmentWriter::GrowAtFirst() {
  if (const std::optional<Drop> refused = file_.Grow(0, kPageBytes)) {
    refusal_ = *refused;
    return false;
  }
  WriteHeader();
  return AllocateRecords(1) && AllocateChunks(1);
}

void SegmentWriter::WriteHeader() {
  auto* header = new (file_.base()) Header{};
  std::memcpy(header->magic, segment::kMagic, sizeof header->magic);
  header->major = segment::kMajor;
  header->minor = segment::kMinor;
  header->header_bytes = sizeof(Header);
  FillRandom(header->segment_id);
  header->max_bytes = layout_.max_bytes;
  header->pid = static_cast<uint32_t>(getpid());
  header->pid_namespace = PidNamespace();
  header->start_ticks = StartTicks();
  header->birth_unix_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  header->descriptors_offset = kPageBytes;
  header->descriptors_capacity = layout_.descriptors_capacity;
  header->directory_offset = layout_.directory_offset;
  header->directory_capacity = layout_.directory_capacity;
  header->ring_offset = layout_.ring_offset;
  header->ring_slots = layout_.ring_slots;
  header->chunks_offset = layout_.chunks_offset;
}

bool SegmentWriter::EnsureAllocated(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t step, uint64_t* allocated) {
  if (wanted <= *allocated) return true;
  const uint64_t grown = std::min(RoundUp(wanted, step), capacity);
  if (const std::optional<Drop> refused = file_.Grow(offset + *allocated, grown - *allocated)) {
    refusal_ = *refused;
    return false;
  }
  *allocated = grown;
  return true;
}

template <class Write>
bool SegmentWriter::AppendExtra(segment::RecordType type, const Write& write) {
  const uint64_t bytes = SizeOf(write);
  if (descriptors_reserved_ + bytes > layout_.descriptors_capacity) {
    refusal_ = Drop::kSegmentFull;
    return false;
  }
  if (!AppendRecord(type, write)) return false;
  descriptors_reserved_ += bytes;
  return true;
}

bool SegmentWriter::AllocateRecords(uint64_t bytes) {
  const uint64_t used = header()->descriptors_used.load(std::memory_order_relaxed);
  return EnsureAllocated(kPageBytes, layout_.descriptors_capacity, used + bytes, kDescriptorStep, &descriptors_allocated_);
}

template <class Write>
bool SegmentWriter::AppendRecord(segment::RecordType type, const Write& write) {
  const uint64_t bytes = SizeOf(write);
  const uint64_t used = header()->descriptors_used.load(std::memory_order_relaxed);
  if (!AllocateRecords(bytes)) return false;
  RecordWriter out(file_.base() + kPageBytes + used);
  out.Put(segment::RecordHeader{static_cast<uint32_t>(bytes), static_cast<uint16_t>(type), 0});
  write(out);
  // Pairs with the reader's acquire: a reader that loads the new size sees the record.
  header()->descriptors_used.store(used + bytes, std::memory_order_release);
  return true;
}

bool SegmentWriter::AddIdentity(const Identity& identity) {
  const auto put = [&](auto& out) { PutIdentity(out, identity); };
  return AppendExtra(segment::RecordType::kIdentity, put);
}

bool SegmentWriter::AddFamily(const FamilyRecord& family) {
  return AppendRecord(
      segment::RecordType::kFamily, [&](auto& out) { PutFamily(out, family); });
}

bool SegmentWriter::AddSeries(const SeriesRecord& series, uint64_t* at) {
  *at = header()->descriptors_used.load(std::memory_order_relaxed);
  return AppendRecord(segment::RecordType::kSeries, [&](auto& out) { PutSeries(out, series); });
}

void SegmentWriter::SetRemoved(uint64_t at, bool removed) {
  constexpr size_t kOffset = sizeof(segment::RecordHeader) + offsetof(segment::SeriesFixed, removed);
  auto* mark = reinterpret_cast<uint32_t*>(file_.base() + kPageBytes + at + kOffset);
  std::atomic_ref(*mark).store(removed ? 1 : 0, std::memory_order_relaxed);
  // Pairs with the reader's acquire: a reader that loads the new count sees the mark.
  header()->removals.fetch_add(1, std::memory_order_release);
}

bool SegmentWriter::AllocateChunks(uint64_t count) {
  return EnsureAllocated(layout_.chunks_offset, layout_.chunks_capacity * kChunkBytes, count * kChunkBytes, kChunkStep,
                         &chunks_allocated_) &&
         EnsureAllocated(layout_.directory_offset, layout_.directory_capacity * sizeof(ChunkEntry), count * sizeof(ChunkEntry),
                         kDirectoryStep, &directory_allocated_);
}

std::atomic<uint64_t>* SegmentWriter::AddChunk(uint32_t lane, uint32_t range) {
  const uint64_t used = header()->chunks_used.load(std::memory_order_relaxed);
  if (!AllocateChunks(used + 1)) return nullptr;
  auto* directory = reinterpret_cast<ChunkEntry*>(file_.base() + layout_.directory_offset);
  directory[used] = ChunkEntry{lane, range};
  // Pairs with the reader's acquire: a reader that loads the new count sees the entry.
  header()->chunks_used.store(used + 1, std::memory_order_release);
  return reinterpret_cast<std::atomic<uint64_t>*>(file_.base() + layout_.chunks_offset + used * kChunkBytes);
}

segment::EventSlot* SegmentWriter::AddRing() {
  uint64_t allocated = 0;
  const uint64_t bytes = layout_.ring_slots * segment::kEventSlotBytes;
  if (!EnsureAllocated(layout_.ring_offset, bytes, bytes, bytes, &allocated)) return nullptr;
  return reinterpret_cast<segment::EventSlot*>(file_.base() + layout_.ring_offset);
}

bool SegmentWriter::CountDropped(Drop why, uint64_t count) {
  Header* header = counts_.load(std::memory_order_relaxed);
  if (header == nullptr) return false;
  header->dropped[static_cast<size_t>(why)].fetch_add(count, std::memory_order_relaxed);
  return true;
}

void SegmentWriter::ForgetAfterFork(uint64_t chunks) {
  file_.ForgetAfterFork();
  counts_.store(nullptr, std::memory_order_relaxed);
  ForgetExitMark();
  chunks_reserved_ = chunks;
}

std::string_view TextOf(Drop why) {
  switch (why) {
    case Drop::kSegmentFull:
      return "this process's segment is full; use fewer label values, or raise PERSIA_METRICS_SEGMENT_BYTES";
    case Drop::kFilesystemFull:
      return "no space is left on the filesystem, except for the reserve that is kept for the job; free some space";
    case Drop::kFileSizeLimit:
      return "the limit on file sizes (ulimit -f) is reached; raise it";
    case Drop::kDescriptorLimit:
      return "the limit on open files (ulimit -n) is reached; raise it";
    case Drop::kFileInaccessible:
      return "the segment's file was deleted or replaced, or may not be opened any more";
    case Drop::kOutOfMemory:
      return "memory ran out";
    default:
      return "it was refused";
  }
}

}  // namespace abi_1
}  // namespace persia::metrics
