#include "vitals/process_limits.h"

#include <charconv>

#include "files/proc_reader.h"

namespace persia::agent {
namespace {

std::optional<uint64_t> SoftLimit(std::string_view text, std::string_view name) {
  std::string_view line = ProcLine(text, name);
  while (line.starts_with(' ')) line.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;  // "unlimited"
}

}  // namespace

ProcessLimits ParseLimits(std::string_view text) {
  return {.cpu_seconds = SoftLimit(text, "Max cpu time"),
          .file_bytes = SoftLimit(text, "Max file size"),
          .open_files = SoftLimit(text, "Max open files"),
          .address_space = SoftLimit(text, "Max address space")};
}

}  // namespace persia::agent
