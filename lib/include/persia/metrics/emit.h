// Benchmark AI's `emit`: sends named numbers to the program that runs the benchmark.
//
//   persia::metrics::benchmarkai::Emit({{"alexnet.batchsize16.latency", 12.5}});
//
// The environment variable BENCHMARK_AI selects the destination. It is read once, at the first call:
//
//   stdout   (the default) a line of JSON on stdout
//   fifo     a line of JSON into the named pipe BENCHMARK_AI_FIFO_FILEPATH. Default: /tmp/benchmark-ai/fifo, or
//            /tmp/benchmark-ai-fifo, the default before September 2019, if only that one is there and has a reader
//   segment  streams of group `benchmarkai` in this process's segment; the fastest, since it neither waits nor writes JSON
//
// Another process, for example the agent, makes the named pipe and reads it. The first call waits until the pipe exists and has
// a reader, at most BENCHMARK_AI_FIFO_MAX_WAIT_TIME seconds (default 10). It checks every BENCHMARK_AI_FIFO_WAIT_TIME_STEP
// seconds (default 0.5). A full pipe blocks the caller. If the reader has closed the pipe, calls fail immediately until there
// is another reader.
//
// A line has at most PIPE_BUF (4096) bytes, which a pipe takes as a whole, so lines of several processes do not mix. A map that
// does not fit becomes several lines. Numbers that are not finite are written as by Python's json: NaN, Infinity, -Infinity.
//
// Source: https://pypi.org/project/benchmarkai-client-lib/
// Thread safety: any function, from any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "persia/metrics/export.h"
#include "persia/metrics/span.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {

// How a call of Emit ended.
enum class EmitStatus {
  kDone,                  // all metrics were emitted
  kEmptyMap,              // no metrics were given
  kNameTooLong,           // a name does not fit into a line; the other metrics were emitted
  kUnknownMode,           // BENCHMARK_AI is none of the above
  kFifoNotCreatedInTime,  // the named pipe did not appear in time: Benchmark AI's FifoNotCreatedInTimeError
  kFifoNotReadInTime,     // the named pipe exists, but no process opened it for reading in time
  kFifoCannotBeWritten,   // the path is not a named pipe, may not be written, or the pipe's reader closed it
  kOutOfMemory,           // some of the metrics were not emitted
};

// The result of Emit.
struct EmitResult {
  EmitStatus status = EmitStatus::kDone;  // how the call ended
  std::string error = {};                 // what failed and what to do; empty on success

  // Whether all metrics were emitted.
  [[nodiscard]] bool ok() const { return status == EmitStatus::kDone; }
};

// A name and its value, in the unit that the name implies.
using Metric = std::pair<std::string_view, double>;

// Emits the metrics, with no timestamp. A status other than kDone says what was not emitted; nothing is logged.
PERSIA_METRICS_API EmitResult Emit(Span<const Metric> metrics) noexcept;
// The same, for a list in braces.
inline EmitResult Emit(std::initializer_list<Metric> metrics) noexcept {
  return Emit(Span<const Metric>(metrics.begin(), metrics.size()));
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
