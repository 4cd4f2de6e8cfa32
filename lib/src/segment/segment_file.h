// The file of a segment, mapped into memory.
//
// The file is mapped once, far beyond its end, so pointers into it stay valid for the life of the process. To grow, it
// needs no new mapping, only blocks, which are allocated before they are touched: a hole in a full tmpfs would be a SIGBUS in a
// training step.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "segment_format.h"

namespace persia::metrics {
inline namespace abi_1 {

class SegmentFile {
 public:
  SegmentFile() = default;
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  // Makes an empty file without a name in the directory `path`, which is open as `directory_fd`, and maps `max_bytes` of it.
  // The mapping keeps the file's open-file-description lock until the process ends. On failure nothing changes, and `*error`
  // says what failed and what to do.
  bool Create(int directory_fd, const std::string& path, uint64_t max_bytes, std::string* error);

  // Gives the file its name and closes its descriptor. On failure the file is gone, as if it had not been created.
  bool Link(const std::string& file_name, std::string* error);

  // Allocates [offset, offset + bytes). Returns why that is not possible, if it is not. REQUIRES: it ends within max_bytes.
  std::optional<segment::Drop> Grow(uint64_t offset, uint64_t bytes);

  // Deletes a file that has no name yet.
  void Discard();

  // Forgets the mapping, which a forked child does not inherit.
  void ForgetAfterFork();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  // A new descriptor of the file, or -1: no descriptor is kept, since the program may close one that it does not know, and its
  // number is then reused. Sets errno; to ENOENT if the name belongs to another file.
  [[nodiscard]] int Reopen() const;

  std::byte* base_ = nullptr;
  uint64_t max_bytes_ = 0;
  std::string directory_;
  std::string path_;  // empty before Link
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int unnamed_fd_ = -1;  // between Create and Link
  // In bytes of the filesystem.
  uint64_t available_at_birth_ = 0;
  uint64_t reserve_ = 0;  // left to the job
};

}  // namespace abi_1
}  // namespace persia::metrics
