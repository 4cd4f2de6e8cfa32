#include "job/emit_receiver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "lib/src/platform/signals_blocked.h"
#include "persia/metrics/init.h"

namespace persia::agent {
namespace {

constexpr char kGroup[] = "benchmarkai";
// The role of the agent's own segment, unless PERSIA_ROLE is set.
constexpr char kRole[] = "benchmarkai";
constexpr char kModeVariable[] = "BENCHMARK_AI";
constexpr char kPipeMode[] = "fifo";
constexpr char kPathVariable[] = "BENCHMARK_AI_FIFO_FILEPATH";
// Limits of kept handles, and of their names and labels. If a job uses more, handles are looked up again.
constexpr size_t kMaxHandles = 100'000;
constexpr size_t kMaxKeyBytes = 8 << 20;

}  // namespace

EmitReceiver::EmitReceiver(Options options) : options_(std::move(options)) {}

EmitReceiver::~EmitReceiver() { Stop(); }

Status EmitReceiver::Start(std::unique_ptr<NamedPipe> pipe) {
  if (pipe == nullptr) {
    auto opened = NamedPipe::Open(
        {.path = options_.path, .padding = EmitLineParser::kPadding, .max_line_bytes = options_.max_line_bytes});
    if (!opened.ok()) return Error{opened.error()};
    pipe = std::move(opened).value();
  }
  pipe_ = std::move(pipe);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (stop_fd_ < 0) return SystemError("cannot create an eventfd");
  const metrics::SignalsBlocked blocked;
  thread_ = StartThread("emit pipe", [this] { Run(); });
  return Done{};
}

void EmitReceiver::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  if (stop_fd_ >= 0) close(std::exchange(stop_fd_, -1));
  pipe_ = nullptr;
}

// Relaxed: each count is read independently.
EmitReceiver::Counts EmitReceiver::counts() const {
  return {good_.load(std::memory_order_relaxed), bad_.load(std::memory_order_relaxed)};
}

void EmitReceiver::Run() {
  const auto record = [this](std::string_view line) { Record(line); };
  pollfd wait[] = {{.fd = pipe_->fd(), .events = POLLIN, .revents = 0}, {.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  while (wait[1].revents == 0) {
    if (poll(wait, 2, -1) < 0) {
      wait[1].revents = 0;
      continue;
    }
    if ((wait[0].revents & POLLIN) != 0) pipe_->Read(record);
  }
  pipe_->Drain(record);
}

void EmitReceiver::Record(std::string_view line) {
  if (line.data() == nullptr) {
    CountBad("long", "is longer than " + std::to_string(options_.max_line_bytes) + " bytes and is skipped", "");
    return;
  }
  const EmitProblem* problem = parser_.Parse(line, line_);
  for (const auto& [name, value] : line_.values) StreamOf(name, line_).Add(value);
  if (problem == nullptr)
    good_.fetch_add(1, std::memory_order_relaxed);
  else
    CountBad(problem->reason, problem->text, line);
}

void EmitReceiver::CountBad(std::string_view reason, std::string_view text, std::string_view line) {
  bad_.fetch_add(1, std::memory_order_relaxed);
  if (options_.warn && logged_reasons_.emplace(reason).second) {
    options_.warn(
        "a line from the named pipe " + options_.path + " " + std::string(text) + "; further such lines are only counted",
        line);
  }
}

persia::metrics::Stream& EmitReceiver::StreamOf(std::string_view name, const EmitLine& line) {
  key_.clear();
  const auto add = [this](std::string_view text) { key_.append(std::to_string(text.size())).append(1, ':').append(text); };
  add(name);
  for (const auto& [label, value] : line.labels) {
    add(label);
    add(value);
  }
  const auto found = streams_.find(key_);
  if (found != streams_.end()) return found->second;
  key_bytes_ += key_.size();
  if (streams_.size() >= kMaxHandles || key_bytes_ > kMaxKeyBytes) {
    streams_.clear();
    key_bytes_ = key_.size();
  }
  return streams_.emplace(key_, persia::metrics::Stream(kGroup, name, {.labels = line.labels})).first->second;
}

Result<std::unique_ptr<NamedPipe>> OpenEmitPipe(const AgentOptions& options, bool remove) {
  if (options.fifo.empty()) return std::unique_ptr<NamedPipe>();
  const auto group = FindGroup(options.metrics_dir_group);
  if (!group.ok()) return Error{group.error()};
  return NamedPipe::Open({.path = options.fifo, .padding = EmitLineParser::kPadding, .remove = remove, .group = group.value()});
}

bool EmitPipeHasReader(const AgentOptions& options) {
  const auto group = FindGroup(options.metrics_dir_group);
  return group.ok() && NamedPipe::HasReader(options.fifo, group.value());
}

Result<std::unique_ptr<EmitReceiver>> StartEmitReceiver(const AgentOptions& options, const JobSession& session,
                                                        std::unique_ptr<NamedPipe> pipe) {
  if (pipe == nullptr) return std::unique_ptr<EmitReceiver>();
  // The library prefers the environment to its arguments, and the environment may name another job than the agent's flags do.
  for (const auto& [name, value] : session.WorkerEnvironment()) setenv(name.c_str(), value.c_str(), 1);
  setenv("REPLICA_INDEX", std::to_string(options.replica).c_str(), 1);
  const metrics::InitResult own = metrics::Init({.role = kRole});
  if (!own.exporting) {
    // The pipe is still read: without a reader, the job's next `emit` would wait for one, and fail.
    LogError("fifo", "values from the named pipe " + options.fifo + " are not exported: " + own.detail);
  }
  auto receiver = std::make_unique<EmitReceiver>(
      EmitReceiver::Options{.path = options.fifo, .warn = [](const std::string& message, std::string_view line) {
                              LogWarning("fifo.line", message + (line.empty() ? "" : ": " + Quoted(line)));
                            }});
  if (Status started = receiver->Start(std::move(pipe)); !started.ok()) return Error{started.error()};
  return receiver;
}

std::vector<std::pair<std::string, std::string>> EmitEnvironment(const std::string& path) {
  const auto value_of = [](const char* name) { return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name)); };
  const std::string mode = value_of(kModeVariable);
  const std::string own_path = value_of(kPathVariable);
  if (mode.empty()) return {{kModeVariable, kPipeMode}, {kPathVariable, path}};
  if (mode != kPipeMode) return {};
  if (own_path.empty()) return {{kPathVariable, path}};
  if (own_path != path)
    LogWarning("fifo", std::string(kPathVariable) + "=" + own_path + " is the job's own and stays; the agent reads " + path);
  return {};
}

}  // namespace persia::agent
