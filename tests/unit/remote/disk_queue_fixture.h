// A queue in a temporary directory, with small verbs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "remote/disk_queue.h"
#include "temporary_directory.h"

namespace persia::agent {

class DiskQueueFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override {
    queue_.reset();
    close(fd_);
  }

  // Opens the former agent's queue.
  void StartAgent(std::function<void(std::string_view step)> after_step = {}) {
    queue_.reset();
    options_.directory_fd = fd_;
    options_.directory = temporary_.path();
    options_.name = "queue";
    options_.now_ms = [this] { return now_ms_.load(); };
    options_.after_step = std::move(after_step);
    auto queue = DiskQueue::Open(options_);
    ASSERT_TRUE(queue.ok()) << queue.error();
    queue_ = std::move(queue).value();
  }
  // One sample a letter.
  Status Append(const std::string& body, int64_t timestamp_ms = 0) {
    if (timestamp_ms == 0) timestamp_ms = now_ms_ = std::max(now_ms_.load(), queue_->last_timestamp_ms().value_or(0)) + 1;
    return queue_->Append({.timestamp_ms = timestamp_ms, .samples = static_cast<uint32_t>(body.size())}, body);
  }
  // The body of the next request, which is in flight until Finish.
  std::string Take() {
    auto request = queue_->Next();
    return request ? std::move(request->body) : "(nothing)";
  }
  // Sends all that is pending, one after another.
  std::vector<std::string> SendAll() {
    std::vector<std::string> bodies;
    while (queue_->stats().pending_records > 0) {
      bodies.push_back(Take());
      queue_->Finish();
    }
    return bodies;
  }
  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(temporary_ / "queue")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& file : Files()) names.push_back(file.filename());
    return names;
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  const TemporaryDirectory temporary_;
  int fd_ = -1;
  std::atomic<int64_t> now_ms_ = 1'700'000'000'000;  // of the queue's threads, too
  DiskQueue::Options options_;
  CapturedLog log_;
  std::unique_ptr<DiskQueue> queue_;
};

}  // namespace persia::agent
