// Reads a file of the disk queue that holds any bytes: it is a whole request or is skipped, and the requests around it come
// out.
//
// The input is written over the file. Its first byte says where: a fuzzer alone would not find the checksums.
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
  return std::move(queue).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = [] {
    SetUpLog(LogLevel::kOff, LogFormat::kText);
    return open(Directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }();
  if (size == 0) return 0;
  {
    auto queue = Open(fd);
    for (const char* body : {"first", "second"}) Require(queue->Append({.timestamp_ms = 1, .samples = 1}, body).ok());
  }
  {
    // Somewhere in it, or at its end.
    std::fstream file(Directory() + "/queue/000000000002.1.1.queue", std::ios::binary | std::ios::in | std::ios::out);
    Require(file.is_open());
    file.seekp(data[0]);
    file.write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  }
  auto queue = Open(fd);
  Require(queue->Append({.timestamp_ms = 9, .samples = 4}, "live").ok());
  queue->EndWhenEmpty();
  std::string bodies;
  while (const auto request = queue->Next()) {
    if (request->record.number != 2) bodies += request->body;
    queue->Finish();
  }
  Require(bodies == "firstlive");
  Require(queue->stats().pending_samples == 0 && queue->stats().pending_bytes == 0);
  queue.reset();
  std::filesystem::remove_all(Directory() + "/queue");
  return 0;
}
