#include "emit_lines.h"

#include "json.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {

std::vector<std::string> EmitLines(std::span<const Metric> metrics, size_t limit, std::string* too_long) {
  constexpr size_t kEnd = 2;  // "}\n"
  std::vector<std::string> lines;
  std::string line;
  for (const auto& [name, value] : metrics) {
    std::string entry;
    json::AppendString(entry, name);
    entry += ": ";
    json::AppendNumber(entry, value);
    if (1 + entry.size() + kEnd > limit) {
      if (too_long->empty()) {
        *too_long = name;
      }
      continue;
    }
    if (!line.empty() && line.size() + 2 + entry.size() + kEnd > limit) {
      lines.push_back(line + "}\n");
      line.clear();
    }
    line += (line.empty() ? "{" : ", ") + entry;
  }
  if (!line.empty()) {
    lines.push_back(line + "}\n");
  }
  return lines;
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
