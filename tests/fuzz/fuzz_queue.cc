// Reads a file of the disk queue that holds any bytes: whole records come out, other bytes are skipped, and a record that is
// appended afterwards comes last.
//
// The input is written over the file. Its first byte says where, and how many whole records the file has: a fuzzer alone would
// not find their checksums.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "remote/disk_queue.h"

namespace {

using namespace persia::agent;

void Require(bool holds) {
  if (!holds) std::abort();
}

const std::string& Directory() {
  static const std::string directory = [] {
    char name[] = "/dev/shm/persia-fuzz-queue-XXXXXX";
    Require(mkdtemp(name) != nullptr);
    return std::string(name);
  }();
  return directory;
}

std::unique_ptr<DiskQueue> Open(int fd) {
  auto queue = DiskQueue::Open({.directory_fd = fd, .directory = Directory(), .name = "queue", .now_ms = [] { return 0; }});
  Require(queue.ok());
  queue.value()->BeginGeneration();
  return std::move(queue).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = [] {
    SetUpLog(LogLevel::kOff, LogFormat::kText);
    return open(Directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }();
  if (size == 0) return 0;
  const std::string name = Directory() + "/queue/000000000001.queue";
  {
    auto queue = Open(fd);
    for (int i = data[0] % 4; i > 0; --i) Require(queue->Append({.shard = 1, .samples = 1, .timestamp_ms = i}, "whole").ok());
    if (data[0] % 4 == 0) Require(queue->Append({.shard = 1, .samples = 1, .timestamp_ms = 1}, "").ok());
  }
  {
    // Somewhere in it, or at its end.
    std::fstream file(name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(QueueFile::kFileHeaderBytes + data[0]));
    file.write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  }
  auto queue = Open(fd);
  Require(queue->Append({.shard = 2, .samples = 4, .timestamp_ms = 9}, "live").ok());
  std::string last;
  while (queue->stats().pending_records > 0) {
    const auto claim = queue->Next();
    Require(claim.has_value());
    last = claim->body;
    queue->Finish(*claim, DiskQueue::Outcome::kSent);
  }
  Require(last == "live");
  Require(queue->stats().pending_samples == 0 && queue->stats().pending_bytes == 0);
  queue.reset();
  std::filesystem::remove_all(Directory() + "/queue");
  return 0;
}
