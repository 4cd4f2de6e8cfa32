// Makes and exports a process's segment: after Init or by the environment, unless `agent.conf` disables it, and again in a
// forked child.

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "descriptor.h"
#include "log.h"
#include "registry.h"
#include "trusted_directory.h"

namespace persia::metrics {
inline namespace abi_1 {

InitResult Registry::Init(const Options& options) noexcept try {
  MutexLock lock(mutex_);
  if (options.replica) own_ranks_.program = options.replica;
  Identity wanted = ResolveIdentity(options, own_ranks_);
  if (!initialized_ && !wanted.enabled) disabled_.store(true, std::memory_order_relaxed);
  if (disabled_.load(std::memory_order_relaxed)) {
    return {false,
            export_detail_.empty() ? "metrics are disabled, by PERSIA_METRICS_ENABLED or Options::enabled" : export_detail_};
  }
  TakeIdentity(std::move(wanted));
  if (!export_wanted_.exchange(true, std::memory_order_relaxed) && state_ == State::kPrivate) WithdrawAll();
  const bool was_open = state_ != State::kUnopened;
  if (Open() && was_open && (state_ == State::kPrivate || identity_waits_)) Recover();
  InitResult result;
  result.exporting = state_ == State::kExporting;
  result.detail = export_detail_;
  return result;
} catch (const std::exception&) {
  CountDropped(segment::Drop::kOutOfMemory);
  LogLine("memory ran out in Init(), which had no effect; call it again");
  return {};
}

// The first Init decides, and before it the environment. A library that a program uses may call it again.
void Registry::TakeIdentity(Identity wanted) {
  const bool exporting = state_ == State::kExporting;
  Identity renewed = identity_;
  if (!initialized_ && !exporting) {
    renewed = std::move(wanted);
  } else {
    const bool same_job = !wanted.gives.job || wanted.job == identity_.job || !initialized_;
    const bool same_directory = !wanted.gives.metrics_dir || wanted.metrics_dir == identity_.metrics_dir;
    if (!same_job || !same_directory) {
      LogLineOnce(second_init_logged_, {"Init() asks for job \"", wanted.job, "\" in ", wanted.metrics_dir,
                                        ", but this process's metrics already belong to job \"", identity_.job, "\" in ",
                                        identity_.metrics_dir, "; they stay there"});
    }
    if (!initialized_ && same_directory) renewed.job = wanted.job;
    if (wanted.gives.role) renewed.role = wanted.role;
    if (wanted.gives.replica) renewed.replica = wanted.replica;
    if (!wanted.labels.empty()) renewed.labels = std::move(wanted.labels);
  }
  Renew(std::move(renewed));
  identity_known_ = initialized_ = true;
}

void Registry::Renew(Identity renewed) {
  renewed.forked = identity_.forked && renewed.role == identity_.role && renewed.replica == identity_.replica;
  identity_waits_ = identity_waits_ || (state_ == State::kExporting && renewed != identity_);
  identity_ = std::move(renewed);
}

void Registry::SetProcessGroupRank(int32_t rank) noexcept try {
  MutexLock lock(mutex_);
  own_ranks_.process_group = rank;
  if (!identity_known_) return;
  Identity renewed = identity_;
  renewed.replica = ResolveIdentity({}, own_ranks_).replica;
  Renew(std::move(renewed));
  if (identity_waits_) Recover();
} catch (const std::bad_alloc&) {
  CountDropped(segment::Drop::kOutOfMemory);
}

bool Registry::Exporting() noexcept {
  OpenIfUnopened();
  return export_wanted_.load(std::memory_order_relaxed) && !disabled_.load(std::memory_order_relaxed);
}

void Registry::OpenIfUnopened() noexcept try {
  if (open_.load(std::memory_order_acquire) || disabled_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  Open();
} catch (const std::bad_alloc&) {  // the next call tries it again
}

bool Registry::Open() {
  if (disabled_.load(std::memory_order_relaxed)) return false;
  if (state_ != State::kUnopened) return true;
  if (!identity_known_) {
    identity_ = ResolveIdentity({}, own_ranks_);
    identity_known_ = true;
  }
  if (!identity_.enabled) {
    disabled_.store(true, std::memory_order_relaxed);
    return false;
  }
  writer_.Plan(identity_.segment_bytes);
  state_ = State::kPrivate;
  if (identity_.opted_in) export_wanted_.store(true, std::memory_order_relaxed);
  // Before there are chunks, so that they are made in the file.
  waits_ = export_wanted_.load(std::memory_order_relaxed) && !Export();
  if (disabled_.load(std::memory_order_relaxed)) return false;
  EnsureAllChunks();
  if (waits_)
    TryLater();
  else
    Recover();
  open_.store(true, std::memory_order_release);
  return true;
}

bool Registry::Export() noexcept {
  std::string error;
  try {
    if (TryExport(&error)) {
      state_ = State::kExporting;
      export_detail_ = writer_.path();
      return true;
    }
    export_detail_ = error;
  } catch (const std::bad_alloc&) {
    if (state_ == State::kExporting) return true;
    writer_.Discard();
    error = "out of memory";  // short enough to need none
  }
  if (!disabled_.load(std::memory_order_relaxed))
    LogLineOnce(export_failure_logged_, {error, "; this process's metrics are not exported until that is possible"});
  return false;
}

bool Registry::TryExport(std::string* error) {
  const Descriptor directory(OpenTrustedDirectory({.path = identity_.metrics_dir,
                                                   .group = identity_.metrics_dir_group,
                                                   .setting = "PERSIA_METRICS_DIR",
                                                   .group_setting = "PERSIA_METRICS_DIR_GROUP"},
                                                  *error));
  if (!directory.valid()) return false;
  const AgentConf conf = ReadAgentConf(directory.get());
  if (!conf.enabled) {
    *error = "metrics are disabled by the agent of " + identity_.metrics_dir;
    disabled_.store(true, std::memory_order_relaxed);
    return false;
  }
  Identity identity = identity_;
  if (identity.run_id.empty())  // PERSIA_RUN_ID gave none
    identity.run_id = conf.run_id.empty() ? identity.torch_run_id : conf.run_id;
  if (!writer_.Create(directory.get(), identity_.metrics_dir, identity, error)) return false;
  identity_ = std::move(identity);
  return true;
}

}  // namespace abi_1
}  // namespace persia::metrics
