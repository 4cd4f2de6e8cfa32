// Takes what Benchmark AI's `emit` writes into a named pipe, and keeps it in the agent's own segment: streams of group
// `benchmarkai`.
//
//   EmitInlet inlet({.path = "/tmp/benchmark-ai-fifo"});
//   Status open = inlet.Start();
//   ...
//   inlet.Stop();        // takes what is left in the pipe
//
// A segment, since what is in one is neither lost nor counted twice when the agent is killed: the next agent finds it as that
// of any process that ended. REQUIRES: the library of this process was told by persia::metrics::Init which job's it is.
//
// A bad line is counted, the first of each kind is quoted, and the next line is fine. Reading is a thread of its own.
// Thread safety: Start, Stop and the destructor by one thread; the rest from any.
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

#include "inlet/emit_line.h"
#include "inlet/named_pipe.h"
#include "model/result.h"
#include "persia/metrics/stream.h"

namespace persia::agent {

class EmitInlet {
 public:
  struct Options {
    std::string path;
    size_t max_line_bytes = 1 << 20;
    // Called by the thread that reads, with what there is to log and the line that it is about, which may be empty.
    std::function<void(const std::string& message, std::string_view line)> warn = {};
  };
  // Lines so far.
  struct Counts {
    uint64_t good = 0;
    uint64_t bad = 0;    // of which at least a part could not be read
    uint64_t long_ = 0;  // of the bad ones, those that were given up for their length
  };

  explicit EmitInlet(Options options);
  ~EmitInlet();
  EmitInlet(const EmitInlet&) = delete;
  EmitInlet& operator=(const EmitInlet&) = delete;

  Status Start();
  // What is in the pipe by now is taken.
  void Stop();
  [[nodiscard]] Counts counts() const;

 private:
  void Run();
  void Take(std::string_view line);
  void Complain(std::string_view reason, std::string_view text, std::string_view line);
  persia::metrics::Stream& StreamOf(const std::string& name, const EmitLine& line);

  const Options options_;
  std::unique_ptr<NamedPipe> pipe_;
  EmitLineReader reader_;
  EmitLine line_;
  std::unordered_map<std::string, persia::metrics::Stream> streams_;  // by name and labels
  std::string key_;
  std::set<std::string, std::less<>> complained_;  // reasons
  std::atomic<uint64_t> good_ = 0;
  std::atomic<uint64_t> bad_ = 0;
  std::atomic<uint64_t> long_ = 0;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace persia::agent
