#include "machine/machine_reader.h"

#include <optional>
#include <utility>

namespace persia::agent {
namespace {

constexpr std::chrono::seconds kShutdownPatience(1);

}  // namespace

MachineReader::MachineReader(Read read, std::chrono::milliseconds interval) {
  {
    const MutexLock lock(shared_->mutex);
    shared_->interval = interval;
  }
  // If the system has no thread, the values are absent.
  thread_.Start([shared = shared_, read = std::move(read)] { Run(*shared, read); });
}

MachineReader::~MachineReader() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.NotifyAll();
  }
  thread_.Await(kShutdownPatience);
}

void MachineReader::Watch(std::vector<ProcessId> processes) {
  const MutexLock lock(shared_->mutex);
  if (processes == shared_->processes) return;
  shared_->processes = std::move(processes);
  shared_->wanted = true;
  shared_->changed.NotifyAll();
}

void MachineReader::SetInterval(std::chrono::milliseconds interval) {
  const MutexLock lock(shared_->mutex);
  if (std::exchange(shared_->interval, interval) != interval) shared_->changed.NotifyAll();
}

std::shared_ptr<const MachineResult> MachineReader::Newest() const {
  const MutexLock lock(shared_->mutex);
  return shared_->newest;
}

// The processes of the next reading; none: the end.
std::optional<std::vector<ProcessId>> MachineReader::Await(Shared& shared, TimePoint last) {
  const MutexLock lock(shared.mutex);
  while (!shared.stopping && !shared.wanted) {
    const TimePoint due = last + shared.interval;
    if (std::chrono::steady_clock::now() >= due) break;
    shared.changed.WaitUntil(shared.mutex, due);
  }
  shared.wanted = false;
  return shared.stopping ? std::nullopt : std::optional(shared.processes);
}

void MachineReader::Run(Shared& shared, const Read& read) {
  TimePoint began{};
  while (const auto processes = Await(shared, began)) {
    began = std::chrono::steady_clock::now();
    auto result = std::make_shared<const MachineResult>(read(*processes, began));
    const MutexLock lock(shared.mutex);
    shared.newest = std::move(result);
  }
}

MachineReader::Read ReadOf(MachineSources::Options options) {
  return [sources = std::make_shared<MachineSources>(std::move(options))](
             std::span<const ProcessId> processes, MachineReader::TimePoint now) { return sources->Read(processes, now); };
}

}  // namespace persia::agent
