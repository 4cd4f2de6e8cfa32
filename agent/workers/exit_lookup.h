// How a process of the job ended: by the wait status that the supervisor reaped, its pidfd, the mark that it left in its
// segment, or its zombie.
//
// Thread safety: the collector thread alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/proc_reader.h"
#include "model/process_id.h"
#include "segment/segment_reader.h"
#include "workers/exit_reasons.h"
#include "workers/pidfd_exits.h"

namespace persia::agent {

class ExitLookup {
 public:
  // `reaped`: of the supervisor, or null. It outlives this.
  explicit ExitLookup(const ExitReasons* reaped = nullptr);

  // Prepares for the end of a living process.
  void Watch(const SegmentReader& living);
  // Whether the process lives, although it has unlocked its segment. False: also if this is not known.
  bool Lives(const SegmentReader& unlocked);
  // As in model/exit_reason.h; nothing: not known, or not known yet. REQUIRES: the segment was read after its writer had ended.
  std::optional<std::string> ReasonOf(const SegmentReader& ended);
  // False: it lives, is a zombie, or nothing is known about it.
  [[nodiscard]] bool IsReaped(const SegmentReader& reader) const;
  // Later, only the supervisor and the kernel may still report it.
  [[nodiscard]] std::optional<std::string> ReasonOf(const ProcessId& ended) const;
  [[nodiscard]] bool MayLearnMore(const ProcessId& ended) const;
  // Nothing is asked about it any more.
  void Forget(const ProcessId& ended) { pidfds_.Forget(ended); }

 private:
  [[nodiscard]] bool HasPidHere(const ProcessId& process) const;

  const ExitReasons* reaped_;
  PidfdExits pidfds_;
  ProcReader proc_;
  std::optional<uint64_t> own_namespace_;
};

}  // namespace persia::agent
