#include "inlet/emit_inlet.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/src/signals_blocked.h"

namespace persia::agent {
namespace {

constexpr char kGroup[] = "benchmarkai";
// Handles of so many streams are kept; a job that makes names without end looks the rest up each time.
constexpr size_t kMostHandles = 100'000;

}  // namespace

EmitInlet::EmitInlet(Options options) : options_(std::move(options)) {}

EmitInlet::~EmitInlet() { Stop(); }

Status EmitInlet::Start() {
  auto pipe =
      NamedPipe::Open({.path = options_.path, .padding = EmitLineReader::kPadding, .max_line_bytes = options_.max_line_bytes});
  if (!pipe.ok()) {
    return Error{pipe.error()};
  }
  pipe_ = std::move(pipe).value();
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (stop_fd_ < 0) {
    return Error{std::string("cannot make an eventfd: ") + std::strerror(errno)};
  }
  const metrics::SignalsBlocked blocked;
  thread_ = std::thread(&EmitInlet::Run, this);
  return Done{};
}

void EmitInlet::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  if (stop_fd_ >= 0) {
    close(std::exchange(stop_fd_, -1));
  }
  pipe_ = nullptr;
}

EmitInlet::Counts EmitInlet::counts() const {
  return {good_.load(std::memory_order_relaxed), bad_.load(std::memory_order_relaxed), long_.load(std::memory_order_relaxed)};
}

void EmitInlet::Run() {
  const auto take = [this](std::string_view line) { Take(line); };
  pollfd wait[] = {{.fd = pipe_->fd(), .events = POLLIN, .revents = 0}, {.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  while (wait[1].revents == 0) {
    if (poll(wait, 2, -1) < 0) {
      wait[1].revents = 0;
      continue;
    }
    if ((wait[0].revents & POLLIN) != 0) {
      pipe_->Read(take);
    }
  }
  pipe_->Drain(take);
}

void EmitInlet::Take(std::string_view line) {
  if (line.data() == nullptr) {
    long_.fetch_add(1, std::memory_order_relaxed);
    bad_.fetch_add(1, std::memory_order_relaxed);
    Complain("long", "is longer than " + std::to_string(options_.max_line_bytes) + " bytes, and was given up", "");
    return;
  }
  const EmitProblem* problem = reader_.Read(line, line_);
  for (size_t i = 0; i < line_.count; ++i) {
    StreamOf(line_.values[i].first, line_).Add(line_.values[i].second);
  }
  (problem == nullptr ? good_ : bad_).fetch_add(1, std::memory_order_relaxed);
  if (problem != nullptr) {
    Complain(problem->reason, problem->text, line);
  }
}

void EmitInlet::Complain(std::string_view reason, std::string_view text, std::string_view line) {
  if (options_.warn && complained_.emplace(reason).second) {
    options_.warn(
        "a line from the named pipe " + options_.path + " " + std::string(text) + "; further such lines are only counted",
        line);
  }
}

persia::metrics::Stream& EmitInlet::StreamOf(const std::string& name, const EmitLine& line) {
  const std::string* key = &name;
  if (!line.labels.empty()) {
    key_ = name;
    for (const auto& [label, value] : line.labels) {
      // No JSON text holds a zero byte, nor does a string of it that is not escaped for it.
      key_.append(1, '\0').append(label).append(1, '\0').append(value);
    }
    key = &key_;
  }
  const auto found = streams_.find(*key);
  if (found != streams_.end()) {
    return found->second;
  }
  if (streams_.size() >= kMostHandles) {
    streams_.clear();
  }
  return streams_.emplace(*key, persia::metrics::Stream(kGroup, name, {.labels = line.labels})).first->second;
}

}  // namespace persia::agent
