// A state that is kept as a journal: records that are appended as the state changes, and now and then replaced by a checkpoint,
// the records of the whole state. What is written grows with what changes.
//
//   Result<JournalContent> content = ReadJournal(file, format, problem);
//   for (const JournalRecord& record : content.value().records) ...
//
//   JournalWriter writer({.file = file, .format = format});
//   writer.Start();
//   if (writer.WantsCheckpoint()) writer.Replace(whole_state); else writer.Append(what_changed);
//   writer.AwaitWritten(writer.last(), 250ms);
//
// Format: the header: 8 bytes of magic, uint32 version, uint32 0. Then records: uint32 size of the payload, uint16 tag, uint16 0,
// uint32 CRC-32 of those 8 bytes and the payload, the payload. Numbers are little-endian. Tags that a reader does not know are
// skipped by their size. A file of version 1 has one payload without a tag instead (files/state_file.h).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "base/mutex.h"
#include "base/result.h"
#include "files/journal_file.h"

namespace persia::agent {

struct JournalFormat {
  std::array<char, 8> magic{};
  uint32_t version = 2;  // of the records; a file of a newer version is not read
};

struct JournalRecord {
  uint16_t tag = 0;
  std::string_view payload;
};

struct JournalContent {
  uint32_t version = 0;                // 0: there is no file
  std::string bytes;                   // the records' payloads point into it
  std::vector<JournalRecord> records;  // of version 1: one, with tag 0
};

// Reads the records up to the end, or to one that was not written whole, as when the writer was killed. A damaged file is set
// aside, and its records before the damage are returned; `problem` then says so, and says how many bytes are lost. An error if it
// cannot be read, or is damaged and cannot be set aside: it must not be replaced. `look`: nothing is set aside, and damage is
// only described.
Result<JournalContent> ReadJournal(JournalFile& file, const JournalFormat& format, bool look, std::string& problem);

// Appends a record to `batch`.
void AddRecord(std::string& batch, uint16_t tag, std::string_view payload);

// Writes a journal in a thread of its own, so that a hung or full disk delays nobody else.
//
// A write that fails is not repeated: WantsCheckpoint then asks for the whole state, after a backoff of 1 s to 30 s. So it does
// when so much waits behind a write that hangs that the whole state is shorter, and when the file has grown to twice the last
// checkpoint. What waits is dropped then. Thread safety: Start, Stop: one thread; all else: any thread.
class JournalWriter {
 public:
  struct Options {
    std::shared_ptr<JournalFile> file;  // used by the writer's thread alone
    JournalFormat format;
    // False: Append and Replace write before they return, and there is no thread.
    bool threaded = true;
    // The file may grow by so much before a checkpoint, whatever its size.
    size_t min_growth = 64 << 10;
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  struct Stats {
    uint64_t bytes_written = 0;
    uint64_t errors = 0;
    size_t file_bytes = 0;
    size_t waiting_bytes = 0;
    std::chrono::milliseconds behind{0};  // since when the oldest change waits to be on disk
    std::optional<std::string> error;     // of the last attempt; none: it succeeded
  };

  explicit JournalWriter(Options options);
  ~JournalWriter();  // Stop(0s)

  void Start();
  // Waits at most `patience` for what waits to be written, then ends the thread; a thread that hangs in a system call is left
  // alone, together with what it uses.
  void Stop(std::chrono::milliseconds patience);

  // Each returns the number of the write. `records` are of AddRecord. REQUIRES for Append: !WantsCheckpoint().
  uint64_t Append(std::string records);
  uint64_t Replace(std::string records);
  // Whether the next write must be a Replace. True before the first. False while a failed write's backoff lasts: then nothing
  // should be written, see Blocked.
  [[nodiscard]] bool WantsCheckpoint() const;
  // Whether a failed write's backoff lasts: changes are to be kept by the caller, and are part of the next checkpoint.
  [[nodiscard]] bool Blocked() const;
  // The number of the last write that is on disk, with all before it; 0: none.
  [[nodiscard]] uint64_t written() const;
  // Waits until the write `number` is on disk; false: it is not after `patience`. Returns at once if a write has been hanging for
  // longer than `patience` already, or the last one failed.
  bool AwaitWritten(uint64_t number, std::chrono::milliseconds patience);
  [[nodiscard]] Stats stats() const;
};

}  // namespace persia::agent
