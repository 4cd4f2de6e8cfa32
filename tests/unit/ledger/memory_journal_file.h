// A journal's file in memory, which may fail.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "files/journal_file.h"

namespace persia::agent::testing {

// The part that outlives the agents that use it.
struct MemoryDisk {
  std::optional<std::string> bytes = {};
  std::optional<std::string> set_aside = {};
};

class MemoryJournalFile : public JournalFile {
 public:
  enum class Operation { kRead, kReplace, kAppend, kSetAside, kRemove };
  // Asked before each operation, with the number of bytes to write: how many of them are written. Fewer: the operation fails.
  // It may throw, to play the end of the process.
  using Allow = std::function<size_t(Operation operation, size_t bytes)>;

  // What a power cut leaves of bytes that were being appended, if Allow throws.
  using Tear = std::function<std::string(std::string_view bytes)>;

  explicit MemoryJournalFile(MemoryDisk& disk, Allow allow = {}, Tear tear = {})
      : disk_(disk), allow_(std::move(allow)), tear_(std::move(tear)) {}

  Result<std::optional<std::string>> Read(std::string& /*broken*/) override {
    if (Allowed(Operation::kRead, 1) < 1) return Error{"cannot read memory: no descriptor is left"};
    return disk_.bytes;
  }
  Status Replace(std::string_view bytes) override {
    if (Allowed(Operation::kReplace, bytes.size()) < bytes.size()) return Error{"cannot write memory: it is full"};
    disk_.bytes = bytes;
    return Done{};
  }
  Status Append(std::string_view bytes) override {
    size_t written = 0;
    try {
      written = Allowed(Operation::kAppend, bytes.size());
    } catch (...) {
      if (tear_) *disk_.bytes += tear_(bytes);
      throw;
    }
    *disk_.bytes += bytes.substr(0, written);
    return written < bytes.size() ? Status(Error{"cannot write memory: it is full"}) : Status(Done{});
  }
  bool SetAside(std::string_view why, std::string& message) override {
    message = "memory cannot be used: " + std::string(why);
    if (Allowed(Operation::kSetAside, 1) < 1) return false;
    disk_.set_aside = std::move(disk_.bytes);
    disk_.bytes.reset();
    return true;
  }
  Status Remove() override {
    if (Allowed(Operation::kRemove, 1) < 1) return Error{"cannot remove memory"};
    disk_.bytes.reset();
    return Done{};
  }
  [[nodiscard]] std::string path() const override { return "memory"; }

 private:
  size_t Allowed(Operation operation, size_t bytes) { return allow_ ? allow_(operation, bytes) : bytes; }

  MemoryDisk& disk_;
  const Allow allow_;
  const Tear tear_;
};

}  // namespace persia::agent::testing
