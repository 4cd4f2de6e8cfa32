#include "gateways/push_reports.h"

#include <algorithm>

namespace persia::agent {

void PushReports::SetGateways(const std::vector<std::string>& names) {
  const MutexLock lock(mutex_);
  for (const std::string& name : names) {
    gateways_.try_emplace(name);
    own_.AddGateway(name);
  }
  std::erase_if(gateways_, [&](const auto& gateway) {
    const bool gone = std::find(names.begin(), names.end(), gateway.first) == names.end();
    if (gone) own_.RetireGateway(gateway.first);
    return gone;
  });
}

void PushReports::Add(const std::string& name, const PushReport& report, const Status& status) {
  bool has_groups = false;
  Gateway* gateway = nullptr;
  {
    const MutexLock lock(mutex_);
    gateway = &gateways_.at(name);
    has_groups = gateways_.size() < 2 || report.groups > 0 || report.result != PushResult::kSuccess;
    if (has_groups) {
      own_.PushDone(name, ToString(report.result), report.duration.count(), report.bytes);
    } else {
      own_.GatewayIdle(name);  // without a request its state is unknown
    }
    if (report.result == PushResult::kDeferred) return;
    gateway->last = report;
    UpdateTotals();
    own_.SetGroups(report.ledger_groups);
    own_.GroupsDeleted(report.groups_deleted);
  }
  // The agent itself interrupts a push, to change its gateways or to end.
  if (has_groups && logs_ && report.result != PushResult::kInterrupted) Log(*gateway, name, report, status);
}

void PushReports::UpdateTotals() {
  PushReport all;
  for (const auto& [name, gateway] : gateways_) {
    all.quarantined_series += gateway.last.quarantined_series;
    all.dropped_series += gateway.last.dropped_series;
  }
  own_.SetQuarantinedSeries("gateway", all.quarantined_series);
  own_.SetDroppedSeries("push_bytes", all.dropped_series);
}

void PushReports::Log(Gateway& gateway, const std::string& name, const PushReport& report, const Status& status) {
  if (!status.ok()) {
    gateway.push_log.Bad(ToString(report.result), "cannot push to " + status.error());
    return;
  }
  gateway.push_log.Good("pushing to " + name);
  if (report.duration > interval_.load()) {
    gateway.slow_log.Bad("slow", "pushes to " + name + " take longer than the push interval; ticks are skipped");
  } else {
    gateway.slow_log.Recovered("pushes take less than the push interval again");
  }
}

PushReport PushReports::Last(const std::string& gateway) const {
  const MutexLock lock(mutex_);
  const auto found = gateways_.find(gateway);
  return found == gateways_.end() ? PushReport() : found->second.last;
}

}  // namespace persia::agent
