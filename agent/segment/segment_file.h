// A segment's file: opens, checks and maps it, and reports whether its writer is alive.
//
// The map stays valid when the file is unlinked. If the file is truncated, copying from it fails without a crash. The contents
// are hostile input: this class checks the header's fixed part, once, and keeps a copy of it.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "segment_format.h"

namespace persia::agent {

// Why a segment cannot be read. `reason` is a label value: "access", "type", "owner", "size", "magic", "version", "corrupt",
// "duplicate". `text` is the sentence for the log, without the file's name.
struct SegmentProblem {
  std::string reason;
  std::string text;
  std::string segment_id = {};  // as SegmentReader::id(); empty if the header cannot be read
  bool is_shortage = false;     // of descriptors or memory: the next attempt may succeed
};

// Each living process takes a descriptor or two. Whether this one leaves enough to the state, to connections and to pages: a
// quarter of the limit on open files, at most 64.
bool LeavesDescriptors(int fd);

// Which files are accepted.
struct SegmentAccess {
  uid_t owner = 0;
  std::optional<gid_t> group;       // files of this group are accepted from any owner
  uint64_t max_bytes = 1ULL << 30;  // a segment with a higher limit in its header is refused
};

// A private copy of a header. (Its published counts are atomics, which do not copy.)
class HeaderCopy {
 public:
  [[nodiscard]] const persia::metrics::segment::Header* operator->() const {
    return reinterpret_cast<const persia::metrics::segment::Header*>(bytes_.data());
  }
  [[nodiscard]] const persia::metrics::segment::Header& operator*() const { return *operator->(); }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  // The segment's random id, as 32 hexadecimal digits.
  [[nodiscard]] std::string Id() const;
  // The process that it names is then in no pid namespace: nothing is read of it.
  void ForgetProcess();

 private:
  alignas(persia::metrics::segment::Header) std::array<std::byte, sizeof(persia::metrics::segment::Header)> bytes_{};
};

class SegmentFile {
 public:
  // Opens `name` in the directory. Does not follow a link, and does not block on a pipe. Null: see `problem`.
  static std::unique_ptr<SegmentFile> Open(int directory_fd, const char* name, const SegmentAccess& access,
                                           SegmentProblem& problem);
  // As Open, of an open file, which it closes.
  static std::unique_ptr<SegmentFile> FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem);
  // As Open, of bytes in memory. For tests.
  static std::unique_ptr<SegmentFile> FromMemory(std::shared_ptr<const std::string> bytes, std::function<bool()> writer_lives,
                                                 const SegmentAccess& access, SegmentProblem& problem);
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  // The header as it was when the file was opened. Its offsets and capacities are within max_bytes and do not overlap.
  [[nodiscard]] const HeaderCopy& header() const { return header_; }

  // The owner, if the file was accepted for its group.
  [[nodiscard]] std::optional<uid_t> foreign_owner() const { return foreign_owner_; }

  // Whether the writing process is alive. True if this cannot be determined.
  [[nodiscard]] bool WriterLives() const;

  // Copies words from `offset` on. False: they are beyond max_bytes, or the file was truncated.
  // REQUIRES: `offset` is a multiple of 8.
  [[nodiscard]] bool Copy(uint64_t offset, std::span<uint64_t> to) const;
  // As Copy, by acquire loads in order: for the header's published part, and the ring.
  [[nodiscard]] bool CopyInOrder(uint64_t offset, std::span<uint64_t> to) const;
  [[nodiscard]] bool LoadAcquire(uint64_t offset, uint64_t& to) const { return CopyInOrder(offset, std::span(&to, 1)); }
  // Whether the file takes at least so much space, if it is in memory: there, a read of a hole would take space for it. On
  // other filesystems always true.
  [[nodiscard]] bool HoldsPages(uint64_t bytes) const;
  // False: the fixed part of the header changed, or the file was truncated.
  [[nodiscard]] bool HeaderUnchanged() const;

 private:
  SegmentFile(int fd, const HeaderCopy& header);
  bool Map();

  const int fd_;  // -1: of memory
  std::shared_ptr<const std::string> memory_;
  std::function<bool()> writer_lives_;
  const HeaderCopy header_;
  std::optional<uid_t> foreign_owner_;
  bool in_memory_ = false;  // on a tmpfs
  const std::byte* base_ = nullptr;
  uint64_t mapped_bytes_ = 0;
};

}  // namespace persia::agent
