#include "persia/metrics/emit.h"

#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "emit_pipe.h"
#include "fork_locks.h"
#include "json.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/stream.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {
namespace {

constexpr char kGroup[] = "benchmarkai";

constinit const std::string* the_mode = nullptr;  // guarded by the lock. Never destroyed: metrics are emitted after main

const std::string& Mode() {
  // Not a function-local static, which a fork by another thread may leave locked in the child.
  MutexLock lock(MutexOf(ForkLock::kEmit));
  if (the_mode == nullptr) the_mode = new std::string(EnvOr("BENCHMARK_AI", "stdout"));
  return *the_mode;
}

std::vector<std::string> EntriesOf(Span<const Metric> metrics) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : metrics) {
    std::string& entry = entries.emplace_back();
    json::AppendString(entry, name);
    entry += ": ";
    json::AppendNumber(entry, value);
  }
  return entries;
}

EmitResult EmitTo(const std::string& mode, Span<const Metric> metrics) {
  if (mode == "segment") {
    for (const auto& [name, value] : metrics) Stream(kGroup, name).Add(value);
    return {};
  }
  if (mode == "stdout") {
    std::string none;
    for (const std::string& line : EmitLines(EntriesOf(metrics), SIZE_MAX, &none))
      std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
    return {};
  }
  if (mode == "fifo") {
    PipeResult result = WriteToPipe(EntriesOf(metrics), nullptr);
    if (result.status == EmitStatus::kOutOfMemory) throw std::bad_alloc();
    if (result.path.empty()) return {result.status, std::move(result.text)};
    return {result.status, "emit's pipe \"" + result.path + "\" " + result.text};
  }
  return {EmitStatus::kUnknownMode, "BENCHMARK_AI is \"" + mode + "\"; it must be stdout, fifo or segment"};
}

}  // namespace

EmitResult Emit(Span<const Metric> metrics) noexcept try {
  if (metrics.empty()) return {EmitStatus::kEmptyMap, "emit got an empty map of metrics; give it at least one"};
  return EmitTo(Mode(), metrics);
} catch (const std::bad_alloc&) {
  internal::CountOutOfMemory();
  return {EmitStatus::kOutOfMemory, "out of memory"};  // short enough to need none
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
