// One file of a queue on disk: records one after another, each with a checksum, each of which can be marked as done.
//
// A record that is damaged costs itself: the next one is found by its marker. What is missing at the end of the file, since
// whoever wrote was killed, was never there.
//
// Thread safety: the methods may run at the same time, but for Append, which belongs to one thread; a record is read once
// Append has returned.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

// What is known of a record without its body.
struct QueueRecord {
  uint32_t generation = 0;  // records of different ones are never under way at once
  uint32_t shard = 0;
  uint32_t samples = 0;
  int64_t timestamp_ms = 0;  // of all samples in it
  bool done = false;
  uint32_t body_size = 0;
  uint32_t body_checksum = 0;
  uint64_t at = 0;  // where it begins in the file

  [[nodiscard]] uint64_t end() const;
};

class QueueSegment {
 public:
  static constexpr uint64_t kFileHeaderBytes = 16;
  static constexpr uint64_t kRecordHeaderBytes = 48;
  static constexpr uint64_t kMostBodyBytes = 64 << 20;
  // From which on a queue begins another file.
  static constexpr uint64_t kMostSegmentBytes = 16 << 20;
  static constexpr uint64_t kMostFileBytes = kMostSegmentBytes + kMostBodyBytes;

  // Whether what was asked for is there. kNotNow: the system could not tell, for want of descriptors or memory, or since the
  // disk failed; it may later, and nothing is known to be damaged.
  enum class Found : uint8_t { kYes, kNo, kNotNow };
  // Whether a file must begin as those of this version do; kAny: also a damaged one, whose records are looked for.
  enum class Beginning : uint8_t { kOurs, kAny };

  // Where it is: a descriptor that outlives the call, and a path for messages.
  struct Place {
    int directory_fd = -1;
    std::string directory;
    std::string name;

    [[nodiscard]] std::string path() const { return directory + "/" + name; }
  };

  // Replaces what may have the name.
  static Result<std::shared_ptr<QueueSegment>> Create(const Place& place, mode_t mode);
  // After an error `found` says whether it may be one that passes.
  static Result<std::shared_ptr<QueueSegment>> Open(const Place& place, Found& found, Beginning wanted = Beginning::kOurs);
  ~QueueSegment();
  QueueSegment(const QueueSegment&) = delete;
  QueueSegment& operator=(const QueueSegment&) = delete;

  // Where the next record goes, or would go.
  [[nodiscard]] uint64_t size() const { return size_; }

  // Sets `record.at` and what is known from the body. After an error nothing is there, and it may be tried again.
  Status Append(QueueRecord& record, std::string_view body);
  // The first whole record at `from` or later. `skipped`: how many bytes before it are no record's. `end`: where the file's
  // records end for this reader.
  [[nodiscard]] Found Next(uint64_t from, uint64_t end, QueueRecord& record, uint64_t& skipped) const;
  // An error: the body is not what was written, or cannot be read; `found` says which.
  [[nodiscard]] Result<std::string> Body(const QueueRecord& record, Found& found) const;
  // Holds also for those who open the file later. One byte: never half done.
  void MarkDone(const QueueRecord& record) const;
  // Whether a header stands there with all of its bytes, and damaged: more than that the writer was killed under way.
  [[nodiscard]] bool HasDamagedHeaderAt(uint64_t at) const;
  // Cuts off what is behind the last whole record. Of a file that nobody appends to.
  void CutAt(uint64_t end);

 private:
  QueueSegment(int fd, std::string path, uint64_t size) : fd_(fd), path_(std::move(path)), size_(size) {}
  [[nodiscard]] Found ReadHeader(uint64_t at, uint64_t end, QueueRecord& record) const;

  const int fd_;
  const std::string path_;
  uint64_t size_;
};

}  // namespace persia::agent
