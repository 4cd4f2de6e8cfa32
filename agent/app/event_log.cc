#include "app/event_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "app/text.h"
#include "pages/query_string.h"

namespace persia::agent {
namespace {

constexpr size_t kMostAtOnce = 1000;

std::string Number(double value) {
  if (std::isnan(value)) {
    return "\"NaN\"";
  }
  if (std::isinf(value)) {
    return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string ValueJson(const JobEvent::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return JsonString(*text);
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return std::to_string(*whole);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return Number(*number);
  }
  return "null";
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
  if (event.left_out > 0) {
    out += ", \"metadata_left_out\": " + std::to_string(event.left_out);
  }
  for (const auto& [name, value] : event.identity.labels) {
    out += ", " + JsonString(name) + ": " + JsonString(value);
  }
  return out + ", \"pid\": " + std::to_string(event.pid) + "}";
}

EventLog::~EventLog() {
  if (fd_ > STDERR_FILENO) {
    close(fd_);
  }
}

void EventLog::Add(std::span<const JobEvent> events) {
  const std::lock_guard lock(mutex_);
  for (const JobEvent& event : events) {
    newest_.push_back(event);
    if (newest_.size() > options_.kept) {
      newest_.pop_front();
    }
    if (options_.file.empty()) {
      continue;
    }
    const Status written = Write(EventJson(event) + "\n");
    if (!written.ok() && !complained_ && options_.warn) {
      options_.warn("events are not written to " + options_.file + ": " + written.error() + "; they go on to be counted");
    }
    complained_ = !written.ok();
  }
}

Status EventLog::OpenFile() {
  // Without O_NONBLOCK opening a pipe would wait for its reader.
  fd_ = options_.file == "-" ? STDOUT_FILENO
                             : open(options_.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    return Error{std::strerror(errno)};
  }
  regular_ = S_ISREG(info.st_mode);
  file_bytes_ = static_cast<uint64_t>(info.st_size);
  return Done{};
}

Status EventLog::Write(const std::string& line) {
  if (fd_ >= 0 && regular_ && fd_ != STDOUT_FILENO && file_bytes_ + line.size() > options_.max_file_bytes) {
    close(fd_);
    fd_ = -1;
    if (std::rename(options_.file.c_str(), (options_.file + ".1").c_str()) != 0 && errno != ENOENT) {
      return Error{"it is full, and cannot be renamed: " + std::string(std::strerror(errno))};
    }
  }
  if (fd_ < 0) {
    if (Status opened = OpenFile(); !opened.ok()) {
      return opened;
    }
  }
  // The collector writes: it must not wait for whoever reads a pipe or a terminal.
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (!regular_ && (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)) {
    return Error{"whoever reads it does not keep up, or has gone"};
  }
  for (size_t at = 0; at < line.size();) {
    const ssize_t size = write(fd_, line.data() + at, line.size() - at);
    if (size < 0 && errno != EINTR) {
      return Error{std::strerror(errno)};
    }
    at += size > 0 ? static_cast<size_t>(size) : 0;
  }
  file_bytes_ += line.size();
  return Done{};
}

std::string EventLog::Answer(const Query& query) {
  std::vector<std::string> found;
  {
    const std::lock_guard lock(mutex_);
    for (auto event = newest_.rbegin(); event != newest_.rend() && found.size() < query.limit; ++event) {
      if (event->unix_ms > query.since_ms && (query.type.empty() || event->type == query.type)) {
        found.push_back(EventJson(*event));
      }
    }
  }
  std::string out = "{\"events\": [";
  for (auto event = found.rbegin(); event != found.rend(); ++event) {
    out += (event == found.rbegin() ? "\n" : ",\n") + *event;
  }
  return out + "\n]}\n";
}

Result<EventLog::Query> EventLog::ParseQuery(std::string_view query) {
  Query out;
  for (const auto& [name, value] : ParseParameters(query)) {
    if (name == "type") {
      out.type = value;
    } else if (name == "since") {
      if (!ParseNumber(value, out.since_ms)) {
        return Error{"since: " + Quoted(value) + " is not a number of milliseconds since 1970"};
      }
    } else if (name == "limit") {
      if (!ParseNumber(value, out.limit) || out.limit == 0 || out.limit > kMostAtOnce) {
        return Error{"limit: " + Quoted(value) + " is not a number from 1 to " + std::to_string(kMostAtOnce)};
      }
    } else {
      return Error{"unknown parameter " + Quoted(name) + " (since, type, limit)"};
    }
  }
  return out;
}

}  // namespace persia::agent
