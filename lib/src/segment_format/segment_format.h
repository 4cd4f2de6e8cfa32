// The structs of a segment file, shared by its writer (the library) and its reader (the agent).
//
// lib/segment_format.md describes them with a worked example; the two change together. All numbers are little-endian; this
// header does not compile on another kind of host.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace persia::metrics::segment {

static_assert(std::endian::native == std::endian::little);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

inline constexpr char kMagic[8] = {'P', 'R', 'S', 'M', 'S', 'E', 'G', '\n'};
inline constexpr uint16_t kMajor = 1;
inline constexpr uint16_t kMinor = 0;
inline constexpr char kFileSuffix[] = ".seg";

inline constexpr uint32_t kPageBytes = 4096;
inline constexpr uint32_t kChunkBytes = 4096;
inline constexpr uint32_t kCellsPerChunk = kChunkBytes / 8;

// Why a measurement was not recorded: an index into Header::dropped. New reasons are added at the end.
enum class Drop : uint32_t {
  kBadValue = 0,           // a negative or non-finite increment, a NaN observation
  kBadName = 1,            // an empty or too long name, or a duplicate label
  kBadBounds = 2,          // bounds that are not sorted or finite, or more than 500
  kTypeConflict = 3,       // a name requested again with another type, merge policy or bounds
  kSegmentFull = 4,        // the segment's size limit is reached
  kFilesystemFull = 5,     // the filesystem is full, except for the reserve that is left to the job, or a quota is reached
  kEventOverrun = 6,       // an event record whose slot another writer held
  kEventTruncated = 7,     // an event record that lost metadata entries, or a part of one
  kOutOfMemory = 8,        // the process has no memory or address space left
  kFileSizeLimit = 9,      // RLIMIT_FSIZE
  kDescriptorLimit = 10,   // RLIMIT_NOFILE, or the system's limit on open files
  kFileInaccessible = 11,  // the segment's file was deleted or replaced, or may not be opened any more
  kCount = 12,
};
// The names of the reasons in exported metrics, by Drop.
inline constexpr const char* kDropNames[] = {"bad_value",     "bad_name",        "bad_bounds",       "type_conflict",
                                             "segment_full",  "filesystem_full", "event_overrun",    "event_truncated",
                                             "out_of_memory", "file_size_limit", "descriptor_limit", "file_inaccessible"};
static_assert(sizeof(kDropNames) / sizeof(*kDropNames) == static_cast<uint32_t>(Drop::kCount));

// The first page. Complete before the file gets its name; only the fields below "Published" change afterwards.
struct Header {
  char magic[8];                  // 0
  uint16_t major;                 // 8
  uint16_t minor;                 // 10
  uint32_t header_bytes;          // 12: sizeof(Header) of the writer
  uint8_t segment_id[16];         // 16: random
  uint64_t max_bytes;             // 32: the upper bound of all offsets
  uint32_t pid;                   // 40: in the writer's pid namespace
  uint32_t reserved;              // 44
  uint64_t pid_namespace;         // 48: inode of /proc/self/ns/pid
  uint64_t start_ticks;           // 56: field 22 of /proc/self/stat, which detects a reused pid
  uint64_t birth_unix_ns;         // 64
  uint64_t descriptors_offset;    // 72
  uint64_t descriptors_capacity;  // 80: bytes
  uint64_t directory_offset;      // 88: ChunkEntry[directory_capacity]
  uint64_t directory_capacity;    // 96: entries
  uint64_t ring_offset;           // 104: EventSlot[ring_slots]
  uint64_t ring_slots;            // 112
  uint64_t chunks_offset;         // 120: chunk i is at chunks_offset + i * kChunkBytes
  // Published: the first two are stored with release after the data that they count, and loaded with acquire before it is read.
  std::atomic<uint64_t> descriptors_used;  // 128: bytes of whole records
  std::atomic<uint64_t> chunks_used;       // 136: entries of the directory
  std::atomic<uint64_t> events_recorded;   // 144: tickets taken, also of incomplete records; 0 until the ring's memory exists
  std::atomic<uint64_t> dropped[16];       // 152: by Drop
  std::atomic<uint64_t> exit;              // 280: an ExitMark
  std::atomic<uint64_t> removals;          // 288: raised with release after SeriesFixed::removed of a series changed
};
static_assert(sizeof(Header) == 296 && sizeof(Header) <= kPageBytes);
static_assert(offsetof(Header, max_bytes) == 32 && offsetof(Header, start_ticks) == 56);
static_assert(offsetof(Header, chunks_offset) == 120 && offsetof(Header, descriptors_used) == 128);
static_assert(offsetof(Header, dropped) == 152 && offsetof(Header, exit) == 280 && offsetof(Header, removals) == 288);

// How the process left, written by it at a normal exit: 0 if it has not (it runs, or a signal or _exit ended it), else one of
// these, or kExitCode plus the exit code.
enum ExitMark : uint64_t {
  kNoExit = 0,
  kExitOfUnknownCode = 1,
  kExitCode = 0x100,
};

// Descriptors: append-only records, each a multiple of 8 bytes. A reader skips a record of an unknown type by its `bytes`.
enum class RecordType : uint16_t {
  kIdentity = 1,  // the newest one is valid
  kFamily = 2,    // families are numbered in the order of their records, from 0
  kSeries = 3,
  kWriter = 4,  // the newest one is valid
};
struct RecordHeader {
  uint32_t bytes;  // of the whole record, including this header
  uint16_t type;
  uint16_t reserved;
};
static_assert(sizeof(RecordHeader) == 8);

// These follow a RecordHeader. A string is a uint32_t length and that many bytes, without padding. The record is padded to 8
// bytes.
//
// Identity: IdentityFixed, then strings: job, run_id, role, then `labels` times name, value.
struct IdentityFixed {
  int32_t replica;
  uint32_t restart_count;
  uint32_t labels;
  uint32_t flags;  // kForked, or 0
};
// Of an identity: the process was forked by one that exports with the same role and replica, such as a data loader's.
inline constexpr uint32_t kForked = 1;
// Writer: strings: language, version of the library.
// Family: FamilyFixed, then double[bounds], then strings: group, name, help, unit.
struct FamilyFixed {
  uint8_t kind;          // Kind
  uint8_t gauge_policy;  // a GaugeMerge; 0 for other kinds
  uint16_t max_buckets;  // of a native histogram; 0: no limit, and for other kinds
  uint32_t bounds;
};
// Series: SeriesFixed, then `labels` times the strings name, value, sorted by name, each name once.
struct SeriesFixed {
  uint32_t family;
  uint32_t slot;  // of its first cell
  uint32_t labels;
  uint32_t removed;  // 0: the series is exposed; else it was removed. The only field of a record that changes
};
static_assert(sizeof(IdentityFixed) == 16 && sizeof(FamilyFixed) == 8 && sizeof(SeriesFixed) == 16);

// The kind of a family, and the cells of each of its series, from the series' slot on. "Lane" cells exist in each lane; a
// reader adds them up. "Common" cells exist in the common lane only (ChunkEntry::lane 0).
enum class Kind : uint8_t {
  kCounter = 1,    // lane: the sum of whole increments (uint64), the sum of the others (double)
  kGauge = 2,      // common: the value (double), kUnset until it is first set
  kHistogram = 3,  // lane: the sum (double), then bounds + 1 buckets (uint64), not cumulative
  kStream = 4,  // common: the last value (double), kUnset until the first; lane: the sums of the positive and of the negative
                // values (double), the counts of negative values and of zeros (uint64), then kStreamBuckets buckets of the
                // positive values (uint64)
  kNativeHistogram = 6,  // as a histogram. The bounds are those of consecutive buckets of one schema of Prometheus' native
                         // histograms; the first one is the zero threshold
  kClock = 7,  // common: the clock's word (below), an unused cell that is 0, and when it last started, in nanoseconds of
               // CLOCK_MONOTONIC (uint64); if the process exited and so stopped it, it may be the time of that. The time is
               // exposed as a counter of seconds
  kEvent = 5,  // common: the last timestamp in Unix milliseconds (uint64, 0 until the first); lane: the count (uint64), the sum
               // of the intervals in seconds (double), then bounds + 1 buckets of the intervals (uint64)
};
inline constexpr uint32_t kMaxBounds = 500;

// Limits of records, in bytes and in number. A reader leaves out a record that exceeds one. The library keeps the limits of
// families and series; it writes the labels and the role of a process as the program gives them.
inline constexpr uint32_t kMaxRecordBytes = 1 << 20;      // with its header; a segment with a longer one is refused
inline constexpr uint32_t kMaxNameBytes = 256;            // a family's group, name and unit, a label's name, a role
inline constexpr uint32_t kMaxHelpBytes = 4096;           // a family's help
inline constexpr uint32_t kMaxLabelValueBytes = 4096;     // a label's value, a job's name, a run's id
inline constexpr uint32_t kMaxLabels = 32;                // of a series, and of an identity
inline constexpr uint32_t kMaxIdentityLabelBytes = 2048;  // all names and values: each series is exposed with them
inline constexpr uint32_t kMaxFamilies = 1 << 14;         // of a segment
inline constexpr uint32_t kMaxSeries = 1 << 20;           // of a segment

// The inclusive upper bounds of a stream's buckets are 2^(k / 4) for k from kStreamLeast to kStreamMost, as in a Prometheus
// native histogram of schema 2. One more bucket takes the values above the last bound.
inline constexpr int kStreamLeast = -80;
inline constexpr int kStreamMost = 80;
inline constexpr uint32_t kStreamBuckets = kStreamMost - kStreamLeast + 2;
// Offsets from the slot of a stream.
inline constexpr uint32_t kStreamPositiveSum = 1;
inline constexpr uint32_t kStreamNegativeSum = 2;
inline constexpr uint32_t kStreamNegatives = 3;
inline constexpr uint32_t kStreamZeros = 4;
inline constexpr uint32_t kStreamFirstBucket = 5;

// The number of cells of a series, which are all in one chunk. 0: an unknown kind.
constexpr uint32_t CellsOf(Kind kind, uint32_t bounds) {
  switch (kind) {
    case Kind::kCounter:
      return 2;
    case Kind::kGauge:
      return 1;
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      return bounds + 2;
    case Kind::kEvent:
      return bounds + 4;
    case Kind::kStream:
      return kStreamFirstBucket + kStreamBuckets;
    case Kind::kClock:
      return 3;
  }
  return 0;
}
static_assert(CellsOf(Kind::kEvent, kMaxBounds) <= kCellsPerChunk);

// A gauge that was never set: a signalling NaN, which no arithmetic returns.
inline constexpr uint64_t kUnset = 0x7ff4'7065'7273'6961;

// A clock's word is 2n while the clock stands, and 2(n - t) + 1 while it runs, where n are the nanoseconds that it ran before
// it started, and t is when it started, by CLOCK_MONOTONIC. So a single load tells all at any time; the upper 63 bits are a
// number modulo 2^63.
inline constexpr uint32_t kClockStart = 2;  // the offset of the cell
constexpr bool ClockRuns(uint64_t word) { return word % 2 != 0; }
constexpr uint64_t StartedClock(uint64_t word, uint64_t now) { return ClockRuns(word) ? word : (word - 2 * now) | 1; }
constexpr uint64_t StoppedClock(uint64_t word, uint64_t now) {
  return ClockRuns(word) ? (word & ~uint64_t{1}) + 2 * now : word;
}
// The nanoseconds that it has run.
constexpr uint64_t ClockNs(uint64_t word, uint64_t now) {
  const uint64_t ns = StoppedClock(word, now) >> 1;
  return ns >> 62 == 0 ? ns : 0;  // `now` was read before the clock started
}
constexpr double SecondsOf(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

// A chunk holds the cells of the slots [range * kCellsPerChunk, (range + 1) * kCellsPerChunk) of one lane.
struct ChunkEntry {
  uint32_t lane;   // 0: the common lane
  uint32_t range;  // from 1; 0 belongs to no segment
};
static_assert(sizeof(ChunkEntry) == 8);

// The event ring. Ticket t (from 0) is written to slot t % ring_slots. `sequence` is 0 at first, 2t + 1 while the record is
// written, and 2t + 2 once it is complete. A reader uses the bytes only if `sequence` is 2t + 2 both before and after it reads
// them.
//
// The record: EventFixed, then the strings type and name, then `entries` times: the key (a string), a MetadataType byte, and
// the value: nothing for null, one byte for a boolean, 8 bytes for an integer or a float, a string for a string.
inline constexpr uint32_t kEventSlotBytes = 1024;
struct EventFixed {
  uint64_t unix_ms;
  uint32_t bytes;  // of the record, including this struct
  uint16_t entries;
  uint16_t left_out;  // entries that did not fit
};
struct EventSlot {
  std::atomic<uint64_t> sequence;
  std::atomic<uint64_t> words[(kEventSlotBytes - 8) / 8];
};
static_assert(sizeof(EventFixed) == 16 && sizeof(EventSlot) == kEventSlotBytes);
enum class MetadataType : uint8_t { kNull = 0, kBool = 1, kInt = 2, kDouble = 3, kString = 4 };

}  // namespace persia::metrics::segment
