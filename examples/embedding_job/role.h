// What each role is given, and gives back.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "ledger.h"
#include "options.h"
#include "stop_signal.h"

namespace embedding_job {

// The group of the job's own instruments, and the type of its events.
inline constexpr std::string_view kOwnGroup = "embedding_job";

struct RoleContext {
  const Options& options;
  StopSignal& stop;
  Ledger& ledger;
  int replica = 0;

  // Until when to look for the other roles.
  [[nodiscard]] std::chrono::steady_clock::time_point ConnectDeadline() const {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(options.connect_timeout));
  }
  // Tells a person what this role does, on standard error.
  void Say(std::string_view text) const;
};

// Each runs one role until the job ends. Throws JobError, or StoppedEarly.
void RunDataLoader(const RoleContext& context);
void RunEmbeddingWorker(const RoleContext& context);
void RunEmbeddingServer(const RoleContext& context);
// Returns what the report says of the job as a whole, as JSON fields.
std::string RunTrainer(const RoleContext& context);

}  // namespace embedding_job
