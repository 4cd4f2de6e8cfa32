// How a process's segment comes to be: opting in, Init, the agent's word, and a forked child's own.

#include <unistd.h>

#include "log.h"
#include "registry.h"

namespace persia::metrics {

InitResult Registry::Init(const Options& options) noexcept try {
  Identity wanted = ResolveIdentity(options);
  MutexLock lock(mutex_);
  if (!wanted.enabled) {
    disabled_.store(true, std::memory_order_relaxed);
  }
  if (disabled_.load(std::memory_order_relaxed)) {
    return {false,
            export_detail_.empty() ? "metrics are disabled, by PERSIA_METRICS_ENABLED or Options::enabled" : export_detail_};
  }
  if (state_ == State::kExporting) {
    AdoptRunId(&wanted);  // else the agent's word is not read yet
  }
  const bool moved = wanted.metrics_dir != identity_.metrics_dir;
  const bool changed = wanted != identity_;
  identity_ = std::move(wanted);
  identity_known_ = true;
  export_wanted_ = true;
  if (state_ == State::kUnopened) {
    Open();
  } else if (state_ == State::kPrivate || moved) {
    Export();
  } else if (changed) {
    writer_.AddIdentity(identity_);
  }
  return {state_ == State::kExporting, export_detail_};
} catch (const std::exception&) {
  return {};
}

bool Registry::Exporting() noexcept try {
  MutexLock lock(mutex_);
  return Open() && state_ == State::kExporting;
} catch (const std::exception&) {
  return false;
}

bool Registry::Open() {
  if (state_ != State::kUnopened) {
    return true;
  }
  if (disabled_.load(std::memory_order_relaxed)) {
    return false;
  }
  if (!identity_known_) {
    identity_ = ResolveIdentity({});
    identity_known_ = true;
  }
  if (!identity_.enabled || !writer_.Create(identity_.segment_bytes)) {
    if (identity_.enabled) {
      LogLine("no address space for metrics; they count nothing");
    }
    disabled_.store(true, std::memory_order_relaxed);
    return false;
  }
  state_ = State::kPrivate;
  Rebuild();
  open_.store(true, std::memory_order_release);
  export_wanted_ = export_wanted_ || identity_.opted_in;
  if (export_wanted_) {
    Export();
  }
  return !disabled_.load(std::memory_order_relaxed);
}

bool Registry::Export() {
  std::string error;
  const int directory = OpenJobDirectory(identity_.metrics_dir, &error);
  bool exported = false;
  if (directory >= 0) {
    const AgentConf conf = ReadAgentConf(directory);
    if (!conf.enabled) {
      disabled_.store(true, std::memory_order_relaxed);
      error = "metrics are disabled by the agent of " + identity_.metrics_dir;
    } else {
      agent_run_id_ = conf.run_id;
      AdoptRunId(&identity_);
      exported = writer_.Export(directory, identity_.metrics_dir, identity_, &error);
    }
    close(directory);
  }
  if (exported) {
    state_ = State::kExporting;
    export_detail_ = writer_.path();
    return true;
  }
  export_detail_ = error;
  if (!disabled_.load(std::memory_order_relaxed)) {
    LogLineOnce(export_said_, error + "; this process's metrics are not exported");
  }
  return false;
}

void Registry::AdoptRunId(Identity* identity) const {
  if (identity->run_id.empty()) {
    identity->run_id = agent_run_id_.empty() ? identity->torch_run_id : agent_run_id_;
  }
}

void Registry::Rebuild() {
  for (const internal::FamilyNode* node : families_.nodes()) {
    writer_.AddFamily({node->kind, node->gauge_policy, node->real_bounds(), node->group, node->name, node->help, node->unit});
  }
  for (const internal::SeriesNode* node : series_.nodes()) {
    Publish(*node);
  }
}

}  // namespace persia::metrics
