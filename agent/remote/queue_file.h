// One file of the disk queue: records one after another, each with a checksum, each of which can be marked as done.
//
// If a record is damaged, no other one is lost: a reader finds the next record by its marker. A torn record at the end of the
// file was left by a killed writer: it is cut off, and does not count as damage.
//
// Thread safety: Append and CutAt from one thread; all other methods from any, also during Append. A record may be read once
// Append has returned.
#pragma once

#include <sys/types.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "base/result.h"

namespace persia::agent {

// A record without its body. All but `at` is the record's header in the file, byte for byte.
struct QueueRecord {
  static constexpr uint64_t kHeaderBytes = 48;

  char marker[4] = {'R', 'W', 'R', '1'};
  uint32_t checksum = 0;  // of what follows, up to `done`
  uint32_t body_size = 0;
  uint32_t body_checksum = 0;
  uint32_t generation = 0;  // records of different generations are never in flight together
  uint32_t shard = 0;
  uint32_t samples = 0;
  uint32_t unused = 0;
  int64_t timestamp_ms = 0;  // of all its samples, but for zeros where counts began
  uint8_t done = 0;          // 0 or 1, written in place at any time: no checksum covers it
  uint8_t padding[7] = {};
  uint64_t at = 0;  // offset in the file

  [[nodiscard]] uint64_t end() const { return at + kHeaderBytes + body_size; }
};
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(QueueRecord, body_size) == 8 && offsetof(QueueRecord, timestamp_ms) == 32 &&
              offsetof(QueueRecord, done) == 40 && offsetof(QueueRecord, at) == QueueRecord::kHeaderBytes);

class QueueFile {
 public:
  static constexpr uint64_t kFileHeaderBytes = 16;
  // The writer's requests have at most a few MiB.
  static constexpr uint64_t kMaxBodyBytes = 24 << 20;
  // The queue begins another file at this size, or below.
  static constexpr uint64_t kRotateBytes = 16 << 20;
  static constexpr uint64_t kMaxFileBytes = kRotateBytes + kMaxBodyBytes;

  // kTryLater: the file cannot be read now, for lack of descriptors or memory, or because the disk fails; it may be intact.
  enum class Found : uint8_t { kYes, kNo, kTryLater };

  struct Place {
    int directory_fd = -1;  // outlives the call
    std::string directory;  // for messages
    std::string name;

    [[nodiscard]] std::string path() const { return directory + "/" + name; }
  };

  // Replaces a file of that name.
  static Result<std::shared_ptr<QueueFile>> Create(const Place& place, mode_t mode);
  // After an error, `found` is kNo or kTryLater.
  static Result<std::shared_ptr<QueueFile>> Open(const Place& place, Found& found);

  // Whether the file begins as files of this version do, or does not tell: it is too short, since the writer was killed, or it
  // begins with zeros, since a power cut has lost its first page. Its other pages may be on disk.
  [[nodiscard]] bool has_header() const { return has_header_; }
  [[nodiscard]] bool begins_with_zeros() const { return begins_with_zeros_; }
  // The offset of the next record.
  [[nodiscard]] uint64_t size() const { return size_; }

  // Sets `record.at` and what follows from the body, of at most kMaxBodyBytes. After an error the file is as before.
  Status Append(QueueRecord& record, std::string_view body);
  // The first whole record at `from` or later, and before `end`. `skipped`: how many bytes before it belong to no record.
  [[nodiscard]] Found Next(uint64_t from, uint64_t end, QueueRecord& record, uint64_t& skipped) const;
  // An error: the body is damaged, or cannot be read; `found` says which.
  [[nodiscard]] Result<std::string> Body(const QueueRecord& record, Found& found) const;
  // Holds also for a later agent. Writes one byte, so that it is never half done.
  void MarkDone(const QueueRecord& record) const;
  // All records are on disk when it returns, unless the disk fails.
  void Sync() const;
  // Whether all bytes of a header are there, and damaged: a killed writer does not leave that.
  [[nodiscard]] bool HasDamagedHeaderAt(uint64_t at) const;
  // Cuts off the torn record at the end.
  void CutAt(uint64_t end);

 private:
  QueueFile(OwnedFd fd, std::string path, bool has_header, bool begins_with_zeros, uint64_t size)
      : fd_(std::move(fd)),
        path_(std::move(path)),
        has_header_(has_header),
        begins_with_zeros_(begins_with_zeros),
        size_(size) {}
  [[nodiscard]] Found ReadHeader(uint64_t at, uint64_t end, QueueRecord& record) const;

  const OwnedFd fd_;
  const std::string path_;
  const bool has_header_;
  const bool begins_with_zeros_;
  uint64_t size_;
};

}  // namespace persia::agent
