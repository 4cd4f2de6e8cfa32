// Benchmark AI's `emit`: named numbers, handed to whoever runs the benchmark.
//
//   persia::metrics::benchmarkai::Emit({{"alexnet.batchsize16.latency", 12.5}});
//
// BENCHMARK_AI says where they go; it is read once, at the first call:
//   stdout   (the default) a line of JSON on stdout
//   fifo     a line of JSON into the named pipe BENCHMARK_AI_FIFO_FILEPATH (default /tmp/benchmark-ai-fifo), which somebody
//   else
//            makes and reads: the agent, for one. A first call waits until it is there and is read, for at most
//            BENCHMARK_AI_FIFO_MAX_WAIT_TIME seconds (default 10), looking every BENCHMARK_AI_FIFO_WAIT_TIME_STEP (default 0.5)
//   segment  streams of group `benchmarkai` in this process's segment: the fastest, since it neither waits nor writes JSON
//
// A line never exceeds what a pipe takes as a whole (PIPE_BUF, 4096 bytes): a larger map becomes several lines, so that lines
// of several processes do not mix. Numbers that are not finite are written as Python's json does: NaN, Infinity, -Infinity.
// Source: https://pypi.org/project/benchmarkai-client-lib/
// Thread safety: any function, any thread. In fifo mode a full pipe holds up the caller: that is its contract.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "persia/metrics/export.h"

namespace persia::metrics::benchmarkai {

enum class EmitStatus {
  kDone,
  kEmptyMap,              // there was nothing to emit
  kNameTooLong,           // a name does not fit into a line; the others were emitted
  kUnknownMode,           // BENCHMARK_AI is none of the above
  kFifoNotCreatedInTime,  // no named pipe in time: Benchmark AI's FifoNotCreatedInTimeError
  kFifoNotReadInTime,     // a named pipe, which nobody opened for reading in time
  kFifoCannotBeWritten,   // not a named pipe, not ours to write, or its reader went away
};

struct EmitResult {
  EmitStatus status = EmitStatus::kDone;
  std::string error = {};  // what is wrong and what to do; empty if nothing is

  [[nodiscard]] bool ok() const { return status == EmitStatus::kDone; }
};

using Metric = std::pair<std::string_view, double>;

PERSIA_METRICS_API EmitResult Emit(std::span<const Metric> metrics);
inline EmitResult Emit(std::initializer_list<Metric> metrics) {
  return Emit(std::span<const Metric>(metrics.begin(), metrics.size()));
}

}  // namespace persia::metrics::benchmarkai
