// The memory behind a segment: private at first or a file that an agent can see.
//
// The address range is reserved once, so pointers into it stay good for the life of the process, whatever it is backed by. A
// file is mapped beyond its end; growing it needs no new mapping, only blocks, which are allocated before they are touched: a
// hole in a full tmpfs would be a SIGBUS in a training step.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace persia::metrics {

// A run of bytes in the file.
struct Extent {
  uint64_t offset;
  uint64_t bytes;
};

enum class Growth { kGrown, kFilesystemFull };

class SegmentMemory {
 public:
  SegmentMemory() = default;
  SegmentMemory(const SegmentMemory&) = delete;
  SegmentMemory& operator=(const SegmentMemory&) = delete;

  // Reserves `max_bytes` of private, zeroed memory. False if the address space has no room for it.
  bool Reserve(uint64_t max_bytes);

  // Moves what is in use to a new file without a name in the directory `directory_fd` of `path`, at the same addresses. The
  // file holds an open-file-description lock, which the mapping keeps until the process ends. On failure everything stays as
  // it was, and `*error` tells why and what to do.
  bool MoveToFile(int directory_fd, const std::string& path, const std::vector<Extent>& in_use, std::string* error);

  // Gives the file of MoveToFile its name, and lets go of its descriptor and of the former file, if there was one.
  bool Link(const std::string& file_name, std::string* error);

  // Makes [offset, offset + bytes) usable. REQUIRES: it ends within max_bytes.
  Growth Grow(uint64_t offset, uint64_t bytes);

  // Forgets the mapping, which is not there in a forked child.
  void ForgetAfterFork();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] uint64_t max_bytes() const { return max_bytes_; }
  // The linked file's path; empty while the memory is private.
  [[nodiscard]] std::string path() const { return file_name_.empty() ? "" : directory_ + "/" + file_name_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  // A descriptor of our file, or -1: the number may have been closed and given to another file, the name to another inode.
  [[nodiscard]] int Reopen() const;

  std::byte* base_ = nullptr;
  uint64_t max_bytes_ = 0;
  std::string directory_;
  std::string file_name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int unlinked_fd_ = -1;     // between MoveToFile and Link
  std::string former_path_;  // of the file that MoveToFile left
};

// Opens the job's directory, and makes it and its parent where they are missing (0700). Refuses links, and directories that
// another user could write to (but those shared with a group, 2770). -1 and `*error` on failure.
int OpenJobDirectory(const std::string& path, std::string* error);

}  // namespace persia::metrics
