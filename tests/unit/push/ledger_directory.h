// A directory with a ledger in it, for as long as the object lives.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "files/journal.h"
#include "push/group_ledger.h"
#include "temporary_directory.h"

namespace persia::agent {

class LedgerDirectory {
 public:
  LedgerDirectory() : fd_(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~LedgerDirectory() { close(fd_); }
  LedgerDirectory(const LedgerDirectory&) = delete;
  LedgerDirectory& operator=(const LedgerDirectory&) = delete;

  GroupLedger::Options Options(std::string run_id = "run") {
    return {.directory_fd = fd_, .directory = path_, .run_id = std::move(run_id), .patience = std::chrono::seconds(20)};
  }
  void WriteRaw(const std::string& name, const std::string& bytes) const { std::ofstream(path_ + '/' + name) << bytes; }
  [[nodiscard]] std::string ReadRaw(const std::string& name) const {
    std::ifstream file(path_ + '/' + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A file with a valid frame around any payload.
  void WritePayload(const std::string& name, const std::string& payload) const {
    WriteRaw(name, JournalCheckpoint({.magic = {'P', 'R', 'S', 'M', 'G', 'R', 'P', '\n'}}, OnlyRecord(payload)));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const TemporaryDirectory directory_{"/dev/shm"};
  const std::string path_ = directory_.path();
  const int fd_;
};

}  // namespace persia::agent
