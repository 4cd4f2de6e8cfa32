// A journal's file that hangs, fails and ends the process.
//
// Thread safety: any method, from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "files/journal_file.h"

namespace persia::agent::testing {

// Thrown in place of a kill.
struct Killed {};

// A journal in memory, whose writes can hang, fail, and end the process.
class FaultyJournalFile : public JournalFile {
 public:
  Result<std::optional<std::string>> Read(std::string&) override {
    const MutexLock lock(mutex_);
    return content_;
  }
  Status Replace(std::string_view bytes) override {
    const MutexLock lock(mutex_);
    Pass();
    if (fails_) return Error{"cannot write: full"};
    content_ = bytes;
    return Done{};
  }
  Status Append(std::string_view bytes) override {
    const MutexLock lock(mutex_);
    const size_t taken = torn_bytes_ < bytes.size() && fails_ ? torn_bytes_ : bytes.size();
    *content_ += bytes.substr(0, taken);
    Pass();
    if (fails_) return Error{"cannot write: full"};
    return Done{};
  }
  bool SetAside(std::string_view, std::string&) override { return false; }
  Status Remove() override { return Done{}; }
  [[nodiscard]] std::string path() const override { return "state"; }

  void Hang() {
    const MutexLock lock(mutex_);
    hangs_ = true;
  }
  void AwaitHanging() {
    const MutexLock lock(mutex_);
    while (!hanging_) changed_.Wait(mutex_);
  }
  void Release() {
    const MutexLock lock(mutex_);
    hangs_ = false;
    changed_.NotifyAll();
  }
  // An append that fails has written this many bytes before.
  void SetFails(bool fails, size_t torn_bytes = 0) {
    const MutexLock lock(mutex_);
    fails_ = fails;
    torn_bytes_ = torn_bytes;
  }
  // The next write ends the process.
  void Kill() {
    const MutexLock lock(mutex_);
    killed_ = true;
  }
  int writes() {
    const MutexLock lock(mutex_);
    return writes_;
  }

 private:
  void Pass() PERSIA_REQUIRES(mutex_) {
    ++writes_;
    hanging_ = hangs_;
    changed_.NotifyAll();
    while (hangs_) changed_.Wait(mutex_);
    hanging_ = false;
    if (killed_) throw Killed();
  }

  Mutex mutex_;
  CondVar changed_;
  std::optional<std::string> content_ PERSIA_GUARDED_BY(mutex_);
  bool hangs_ PERSIA_GUARDED_BY(mutex_) = false;
  bool hanging_ PERSIA_GUARDED_BY(mutex_) = false;
  bool fails_ PERSIA_GUARDED_BY(mutex_) = false;
  bool killed_ PERSIA_GUARDED_BY(mutex_) = false;
  size_t torn_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  int writes_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent::testing
