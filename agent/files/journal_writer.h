// Writes a journal in its own thread, so that a hung or full disk delays no other thread.
//
//   JournalWriter writer({.file = file, .format = format});
//   writer.Start();
//   if (writer.WantsCheckpoint()) writer.Replace(whole_state);
//   else if (!writer.Blocked()) writer.Append(changes);
//   writer.AwaitWritten(writer.last(), 250ms);
//
// Records that are appended during a write are written together, as the next batch. A write that fails is not repeated:
// WantsCheckpoint then asks for the whole state, after a backoff of 1 s to 30 s. WantsCheckpoint also asks for it when the
// records appended since the last checkpoint are as large as the checkpoint. So the file has at most twice the size of a
// checkpoint, and so have the records that wait for a write that hangs. A checkpoint replaces all waiting records.
//
// Thread safety: Start, Stop: one thread; all else: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "files/journal.h"
#include "kernel/background_call.h"

namespace persia::agent {

class JournalWriter {
 public:
  struct Options {
    std::shared_ptr<JournalFile> file;  // used by the writer alone, by one thread at a time
    JournalFormat format;
    // False: Append and Replace write before they return, and there is no thread. An exception of the file then reaches their
    // caller, and the write counts as failed.
    bool threaded = true;
    // This many bytes may be appended before a checkpoint, even if the last checkpoint was smaller.
    size_t min_growth = 64 << 10;
    // The first write gets the number after `last`. `written`: the number of the last one that the file has already.
    uint64_t last = 0;
    uint64_t written = 0;
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  struct Stats {
    uint64_t bytes_written = 0;
    uint64_t errors = 0;
    size_t file_bytes = 0;                // after the last write that succeeded
    size_t waiting_bytes = 0;             // with those that are being written
    std::chrono::milliseconds behind{0};  // since when the oldest change waits to be on disk
    std::optional<std::string> error;     // of the last attempt; none: it succeeded
  };

  explicit JournalWriter(Options options);
  ~JournalWriter();  // Stop(0s)
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // Records that were appended before wait for it. If the system cannot start a thread, the writer works without one.
  // REQUIRES: called once.
  void Start();
  // Waits at most `patience` for the writes of waiting records, drops the rest, and ends the thread. A thread that hangs in a
  // system call is left alone, together with its memory; REQUIRES: no other writer of that file in this process then. Records
  // appended after Stop are dropped.
  void Stop(std::chrono::milliseconds patience);

  // Each returns the number of the write. `records` are of AddRecord; appending none writes nothing. If the write before has
  // failed meanwhile, an Append is dropped, because the next checkpoint has the change. A Replace is tried immediately, even if
  // Blocked: the last one before Stop.
  uint64_t Append(std::string records);
  uint64_t Replace(std::string records);
  // Of a journal that has one record, with this payload (JournalContent::only).
  uint64_t ReplaceOnly(std::string_view payload);
  // Lets the thread check that the file still exists, unless a write is waiting, which checks it too. If the file is missing,
  // WantsCheckpoint becomes true.
  void Confirm();
  // Whether the next write must be a Replace. True before the first. False while a failed write's backoff lasts: then nothing
  // should be written, see Blocked.
  [[nodiscard]] bool WantsCheckpoint() const;
  // Whether a failed write's backoff lasts: the caller keeps its changes, which are part of the next checkpoint.
  [[nodiscard]] bool Blocked() const;
  // The number of the last Append or Replace; Options::last: none.
  [[nodiscard]] uint64_t last() const;
  // The number of the last write that is on disk, with all before it; Options::written: none.
  [[nodiscard]] uint64_t written() const;
  // Waits until the write `number` is on disk; false: it is not after `patience`. Returns immediately if a write has been
  // hanging for longer than `patience` already, or the last one failed.
  bool AwaitWritten(uint64_t number, std::chrono::milliseconds patience);
  [[nodiscard]] Stats stats() const;

 private:
  class Queue;

  const std::shared_ptr<Queue> queue_;  // shared with the thread, which may outlive the writer
  BackgroundCall thread_{"state journal"};
};

}  // namespace persia::agent
