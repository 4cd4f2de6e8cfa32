#include "job/event_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/owned_fd.h"
#include "base/text.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string ValueJson(const JobEvent::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return JsonString(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return JsonNumber(*number);
  return "null";
}

// True also if the file cannot be read.
bool EndsWithNewline(const std::string& path, off_t size) {
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char last = '\n';
  return !fd.valid() || pread(fd.get(), &last, 1, size - 1) != 1 || last == '\n';
}

}  // namespace

std::string EventJson(const JobEvent& event) {
  std::string out = "{\"timestamp\": " + std::to_string(event.unix_ms) + ", \"type\": " + JsonString(event.type) +
                    ", \"name\": " + JsonString(event.name) + ", \"metadata\": {";
  for (size_t i = 0; i < event.metadata.size(); ++i) {
    const auto& [key, value] = event.metadata[i];
    out += (i > 0 ? ", " : "") + JsonString(key) + ": " + ValueJson(value);
  }
  out += "}";
  if (event.left_out > 0) out += ", \"metadata_left_out\": " + std::to_string(event.left_out);
  for (const auto& [name, value] : event.identity.labels) out += ", " + JsonString(name) + ": " + JsonString(value);
  return out + ", \"pid\": " + std::to_string(event.pid) + "}";
}

EventLog::~EventLog() {
  if (fd_ > STDERR_FILENO) close(fd_);
}

void EventLog::Add(std::span<const JobEvent> events) {
  const MutexLock lock(mutex_);
  for (const JobEvent& event : events) {
    newest_.push_back(event);
    if (newest_.size() > options_.max_kept) newest_.pop_front();
    if (options_.file.empty()) continue;
    const Status written = Write(EventJson(event) + "\n");
    if (!written.ok() && !write_failed_ && options_.warn) options_.warn(written.error() + "; events are still counted");
    write_failed_ = !written.ok();
  }
}

std::vector<JobEvent> EventLog::Newest(const Filter& filter) const {
  std::vector<JobEvent> found;
  const MutexLock lock(mutex_);
  for (auto event = newest_.rbegin(); event != newest_.rend() && found.size() < filter.limit; ++event)
    if (event->unix_ms > filter.since_ms && (filter.type.empty() || event->type == filter.type)) found.push_back(*event);
  std::ranges::reverse(found);
  return found;
}

Status EventLog::OpenFile() {
  // Without O_NONBLOCK, opening a pipe would wait for its reader.
  fd_ = options_.file == "-" ? STDOUT_FILENO
                             : open(options_.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) return SystemError("cannot open the events file " + options_.file);
  is_regular_file_ = S_ISREG(info.st_mode);
  if (is_regular_file_) is_within_line_ = info.st_size > 0 && !EndsWithNewline(options_.file, info.st_size);
  return Done{};
}

Status EventLog::LeaveOldFile(size_t next_bytes) {
  if (fd_ < 0 || fd_ == STDOUT_FILENO) return Done{};
  struct stat ours {};
  struct stat named {};
  const bool is_in_place = fstat(fd_, &ours) == 0 && stat(options_.file.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
                           ours.st_ino == named.st_ino;
  const bool is_full =
      is_in_place && is_regular_file_ && static_cast<uint64_t>(ours.st_size) + next_bytes > options_.max_file_bytes;
  if (is_in_place && !is_full) return Done{};
  close(fd_);
  fd_ = -1;
  if (is_full && std::rename(options_.file.c_str(), (options_.file + ".1").c_str()) != 0 && errno != ENOENT)
    return SystemError("cannot rotate the full events file " + options_.file);
  return Done{};
}

Status EventLog::Write(const std::string& line) {
  if (Status left = LeaveOldFile(line.size()); !left.ok()) return left;
  if (fd_ < 0) {
    if (Status opened = OpenFile(); !opened.ok()) return opened;
  }
  // The collector thread writes: it must not wait for the reader of a pipe or a terminal.
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (!is_regular_file_ && (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT))
    return Error{"cannot write events to " + options_.file + ": its reader is too slow or has closed it"};
  const std::string text = is_within_line_ ? "\n" + line : line;
  for (size_t at = 0; at < text.size();) {
    const ssize_t size = write(fd_, text.data() + at, text.size() - at);
    if (size < 0 && errno != EINTR) {
      is_within_line_ = is_within_line_ || at > 0;
      return SystemError("cannot write events to " + options_.file);
    }
    at += size > 0 ? static_cast<size_t>(size) : 0;
  }
  is_within_line_ = false;
  return Done{};
}

// The only record (as in files/bytes.h): the list of segment's id (String), position (U64).
namespace {

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'E', 'V', 'P', '\n'}, .version = 1};

}  // namespace

EventPositionFile::EventPositionFile(const StateLocation& location)
    : file_(std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = location.directory_fd,
                                                                       .directory = location.directory,
                                                                       .name = location.FileName("events"),
                                                                       .mode = location.mode,
                                                                       .max_bytes = kMaxListBytes})),
      writer_({.file = file_, .format = kFormat}) {
  writer_.Start();
}

EventPositionFile::Positions EventPositionFile::Load() {
  std::string set_aside;
  const auto content = ReadJournal(*file_, kFormat, /*look=*/false, set_aside);
  if (!set_aside.empty()) LogWarning("events.state", set_aside);
  Positions positions;
  const bool is_good = content.ok() && Decode(content.value().only().value_or(""), positions);
  if (!is_good) positions.clear();
  passed_ = positions;
  return positions;
}

void EventPositionFile::Save(const Positions& positions) {
  if (positions == passed_) return;
  // If it fails, the next change is written; an agent that is killed before that writes some events twice.
  writer_.ReplaceOnly(Encode(positions));
  passed_ = positions;
}

}  // namespace persia::agent
