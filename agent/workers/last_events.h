// The last events of a process, which are part of the record of its end.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/process.h"

namespace persia::agent {

// Adds `events`, and keeps the newest ones of all.
void KeepLast(std::span<const JobEvent> events, std::vector<JobEvent>& kept);
// The last exception that one of the events records.
[[nodiscard]] std::optional<UncaughtException> ExceptionIn(std::span<const JobEvent> events);
// "checkpoint saved: bytes=1024, path=/ckpt/7", each with its time in front; without the record of an exception.
[[nodiscard]] std::vector<std::string> TextsOf(std::span<const JobEvent> events);

}  // namespace persia::agent
