// Reads the lines that Benchmark AI's `emit` writes into a named pipe, and records the values as streams of group
// `benchmarkai`.
//
//   EmitReceiver receiver({.path = "/tmp/benchmark-ai/fifo"});
//   Status started = receiver.Start();
//   ...
//   receiver.Stop();        // records the lines that are left in the pipe
//
// The values are in the agent's own segment. If the agent is killed, they are neither lost nor counted twice: the next agent
// finds the segment of a process that ended. REQUIRES: persia::metrics::Init was called for the job.
//
// A malformed line is counted and skipped; the first of each kind is logged. A thread reads it.
// Thread safety: Start, Stop and the destructor: one thread; counts: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/options.h"
#include "job/emit_line.h"
#include "job/job_session.h"
#include "job/named_pipe.h"
#include "persia/metrics/stream.h"

namespace persia::agent {

class EmitReceiver {
 public:
  struct Options {
    std::string path;
    size_t max_line_bytes = 1 << 20;
    // Called by the reading thread with a message for the log and the line concerned, which may be empty.
    std::function<void(const std::string& message, std::string_view line)> warn = {};
  };
  // Lines so far.
  struct Counts {
    uint64_t good = 0;
    uint64_t bad = 0;  // malformed as a whole or in part
  };

  explicit EmitReceiver(Options options);
  ~EmitReceiver();
  EmitReceiver(const EmitReceiver&) = delete;
  EmitReceiver& operator=(const EmitReceiver&) = delete;

  // Reads `pipe`; null: opens the pipe at the path.
  Status Start(std::unique_ptr<NamedPipe> pipe = nullptr);
  // Records the lines that are in the pipe now.
  void Stop();
  [[nodiscard]] Counts counts() const;

 private:
  void Run();
  void Record(std::string_view line);
  void CountBad(std::string_view reason, std::string_view text, std::string_view line);
  persia::metrics::Stream& StreamOf(std::string_view name, const EmitLine& line);

  const Options options_;
  std::atomic<uint64_t> good_ = 0;
  std::atomic<uint64_t> bad_ = 0;

  // The reading thread's.
  std::unique_ptr<NamedPipe> pipe_;
  EmitLineParser parser_;
  EmitLine line_;
  std::unordered_map<std::string, persia::metrics::Stream> streams_;  // by name and labels
  std::string key_;
  size_t key_bytes_ = 0;  // of streams_
  std::set<std::string, std::less<>> logged_reasons_;

  int stop_fd_ = -1;
  std::thread thread_;
};

// The configured pipe, created and open; null if none is configured. With `remove` it is removed at the end, also if another
// process created it.
Result<std::unique_ptr<NamedPipe>> OpenEmitPipe(const AgentOptions& options, bool remove = false);

// Whether another agent reads the configured pipe, and OpenEmitPipe would not refuse it.
bool EmitPipeHasReader(const AgentOptions& options);

// Starts the receiver of the pipe, and the library in this process for it; null if `pipe` is null.
// REQUIRES: called once, while no other thread reads the environment.
Result<std::unique_ptr<EmitReceiver>> StartEmitReceiver(const AgentOptions& options, const JobSession& session,
                                                        std::unique_ptr<NamedPipe> pipe);

// The variables by which a command's `emit` finds the pipe at `path`, except those that the environment already has. None if
// the environment selects another mode than the pipe. REQUIRES: the pipe is open for reading; without a reader, `emit` waits
// for one.
std::vector<std::pair<std::string, std::string>> EmitEnvironment(const std::string& path);

}  // namespace persia::agent
