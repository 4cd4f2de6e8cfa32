#include "source/exec_metrics.h"

#include <bit>
#include <utility>

namespace persia::agent {
namespace {

// In the order of their names: a layout's families are sorted.
constexpr std::pair<const char*, const char*> kFamilies[] = {
    {"persia_exec_exit_code", "Exit code of the command that the agent ran; 128 + n if signal n ended it."},
    {"persia_exec_run_time_seconds", "How long the command that the agent runs has been running, or had run when it ended."},
    {"persia_exec_running", "1 while the command that the agent runs is running, else 0."},
};

}  // namespace

ExecRecord::ExecRecord(std::function<TimePoint()> now) : now_(std::move(now)), began_(now_()) {}

void ExecRecord::CommandEnded(int exit_code) {
  const std::lock_guard lock(mutex_);
  ended_ = now_();
  exit_code_ = exit_code;
}

ExecRecord::State ExecRecord::state() const {
  const std::lock_guard lock(mutex_);
  return {std::chrono::duration<double>((exit_code_ ? ended_ : now_()) - began_).count(), exit_code_};
}

ExecMetrics::ExecMetrics(Identity identity, const ExecRecord& record) : record_(record) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(std::move(identity));
  for (const auto& [name, help] : kFamilies) {
    layout->families.push_back({.name = name,
                                .type = MetricType::kGauge,
                                .help = help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0, .first_value = layout->value_count++, .labels = {}}}});
  }
  layout_ = std::move(layout);
}

Result<std::shared_ptr<const Snapshot>> ExecMetrics::Collect() {
  const ExecRecord::State state = record_.state();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values = {state.exit_code ? *state.exit_code : kAbsentValue, state.run_time_seconds, state.exit_code ? 0.0 : 1.0};
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

}  // namespace persia::agent
