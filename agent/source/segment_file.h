// A segment's file: opened with care, mapped, and asked whether its writer lives.
//
// The map stays good when the file is unlinked; when it is truncated, copying from it fails and nothing worse. What stands in
// the file is hostile: only the header's fixed part is checked here, once, and kept.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "segment_format.h"

namespace persia::agent {

// Why a segment cannot be read. `reason` is one of a few words, for counting: "access", "type", "owner", "size", "magic",
// "version", "corrupt", "duplicate". `text` is the sentence for the log; it does not name the file.
struct SegmentProblem {
  std::string reason;
  std::string text;

  friend bool operator==(const SegmentProblem&, const SegmentProblem&) = default;
};

// Whose files are taken.
struct SegmentAccess {
  uid_t owner = 0;
  std::optional<gid_t> group;       // files of this group are taken from any owner
  uint64_t max_bytes = 1ULL << 30;  // a header that asks for more is refused
};

// A private copy of a header. (Its published counts are atomics, which do not copy.)
class HeaderCopy {
 public:
  [[nodiscard]] const persia::metrics::segment::Header* operator->() const {
    return reinterpret_cast<const persia::metrics::segment::Header*>(bytes_.data());
  }
  [[nodiscard]] const persia::metrics::segment::Header& operator*() const { return *operator->(); }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }

 private:
  alignas(persia::metrics::segment::Header) std::array<std::byte, sizeof(persia::metrics::segment::Header)> bytes_{};
};

class SegmentFile {
 public:
  // Opens `name` in the directory without following a link, and without waiting, should it be a pipe. Null: see `problem`.
  static std::unique_ptr<SegmentFile> Open(int directory_fd, const char* name, const SegmentAccess& access,
                                           SegmentProblem& problem);
  // Takes an open file over.
  static std::unique_ptr<SegmentFile> FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem);
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  // The header as it was when the file was opened. Its offsets and capacities are within max_bytes and do not overlap.
  [[nodiscard]] const HeaderCopy& header() const { return header_; }

  // Whether the process that writes the segment has not ended. Where the kernel cannot tell, it is taken to live.
  [[nodiscard]] bool WriterLives() const;

  // Copies words from `offset` on. False: they are beyond max_bytes, or the file no longer holds them.
  // REQUIRES: `offset` is a multiple of 8.
  [[nodiscard]] bool Copy(uint64_t offset, std::span<uint64_t> to) const;
  // The same with acquire, one after another: the header's published part, and the ring.
  [[nodiscard]] bool CopyInOrder(uint64_t offset, std::span<uint64_t> to) const;
  [[nodiscard]] bool LoadAcquire(uint64_t offset, uint64_t& to) const { return CopyInOrder(offset, std::span(&to, 1)); }
  // False: the fixed part of the header is not what it was, or gone.
  [[nodiscard]] bool HeaderUnchanged() const;

 private:
  SegmentFile(int fd, const HeaderCopy& header);
  bool Map();

  const int fd_;
  const HeaderCopy header_;
  const std::byte* base_ = nullptr;
  uint64_t mapped_bytes_ = 0;
};

}  // namespace persia::agent
