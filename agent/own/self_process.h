// Metrics of the agent's own process, `process_*`, as every Prometheus client library exposes them.
//
// For the agent's /metrics only: a PushGateway exposes families of these names itself, with which pushed ones would conflict.
//
// Thread safety: the collector thread alone.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "kernel/proc_reader.h"
#include "model/rows.h"

namespace persia::agent {

class SelfProcess {
 public:
  // `proc` is where the proc filesystem is mounted.
  explicit SelfProcess(Identity identity, std::filesystem::path proc = "/proc")
      : identity_(std::move(identity)), proc_(std::move(proc)) {}

  // Values that /proc does not have are absent. Every snapshot has the same layout object.
  std::shared_ptr<const Snapshot> Collect();

 private:
  const Identity identity_;
  ProcReader proc_;
  Rows rows_;
};

}  // namespace persia::agent
