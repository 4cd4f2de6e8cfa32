// The functions that run the roles.
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

  // Deadline for connecting to the other roles.
  [[nodiscard]] std::chrono::steady_clock::time_point ConnectDeadline() const {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(options.connect_timeout));
  }
  // Prints a message of this role on standard error.
  void Say(std::string_view text) const;
};

// Each function runs one role until the job ends. Throws JobError or StoppedEarly.
void RunDataLoader(const RoleContext& context);
void RunEmbeddingWorker(const RoleContext& context);
void RunEmbeddingServer(const RoleContext& context);
// Returns the report's fields about the whole job, as JSON.
std::string RunTrainer(const RoleContext& context);

}  // namespace embedding_job
