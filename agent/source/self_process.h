// The agent's own process, `process_*`, as every Prometheus client exposes it.
//
// For the agent's /metrics only: a gateway holds families of these names itself, and a push of them may clash with its own.
//
// Thread safety: as Source.
#pragma once

#include <filesystem>
#include <memory>

#include "source/proc_reader.h"
#include "source/source.h"

namespace persia::agent {

class SelfProcess : public Source {
 public:
  // `proc` is where the proc filesystem is mounted.
  explicit SelfProcess(Identity identity, std::filesystem::path proc = "/proc");

  // What /proc does not tell is left out. One layout for ever.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

 private:
  ProcReader proc_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent
