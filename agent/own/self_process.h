// Metrics of the agent's own process, `process_*`, as every Prometheus client library exposes them.
//
// For the agent's /metrics only: a PushGateway exposes families of these names itself, with which pushed ones would conflict.
//
// Thread safety: the collector thread alone.
#pragma once

#include <filesystem>
#include <memory>

#include "files/proc_reader.h"
#include "model/snapshot.h"

namespace persia::agent {

class SelfProcess {
 public:
  // `proc` is where the proc filesystem is mounted.
  explicit SelfProcess(Identity identity, std::filesystem::path proc = "/proc");

  // Values that /proc does not have are absent. Every snapshot has the same layout object.
  std::shared_ptr<const Snapshot> Collect();

 private:
  ProcReader proc_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent
