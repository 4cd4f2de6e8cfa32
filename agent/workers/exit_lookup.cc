#include "workers/exit_lookup.h"

#include "model/exit_reason.h"

namespace persia::agent {

namespace segment = persia::metrics::segment;

ExitLookup::ExitLookup(const ExitReasons* reaped) : reaped_(reaped), own_namespace_(proc_.PidNamespace("self")) {}

std::optional<std::string> ExitLookup::ReasonOf(const SegmentReader& ended) {
  const segment::Header& header = ended.header();
  const bool has_pid_here = own_namespace_ && header.pid_namespace == *own_namespace_;
  if (has_pid_here && reaped_ != nullptr) {
    if (auto reason = reaped_->ReasonOf(header.pid, header.start_ticks)) return reason;
  }
  if (const uint64_t mark = ended.exit_mark(); mark != segment::kNoExit) {
    const bool has_code = mark >= segment::kExitCode && mark <= segment::kExitCode + 0xff;
    return has_code ? "exit_" + std::to_string(mark - segment::kExitCode) : std::string(kExitOfUnknownCode);
  }
  if (!has_pid_here) return std::nullopt;
  const auto status = proc_.WaitStatusOfZombie(std::to_string(header.pid), header.start_ticks);
  return status ? std::optional(ExitReason(*status)) : std::nullopt;
}

}  // namespace persia::agent
