// The process that calls the driver's library for the agent, and the agent's thread that supervises it.
//
//   GpuReader reader({.command = ReaderCommand(library, interval), .interval = interval});
//   reader.Start();
//   GpuReader::News news = reader.Take();            // at each collection; never waits
//
// A call into a driver may take seconds, hang, or crash. So a process of its own makes it: the agent's program, with the first
// argument kGpuReaderVerb. It writes messages (gpu_sample.h) into a pipe, which the thread reads. If the process is silent for
// too long, ends, or writes bytes that are no message, the thread kills it, and starts it again after a backoff. There is never
// more than one: while the kernel has not ended a killed process, none is started.
//
// Thread safety: Start, Stop: one thread; Take: any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/owned_fd.h"
#include "gpu/gpu_sample.h"

namespace persia::agent {

inline constexpr char kGpuReaderVerb[] = "gpu-reader";

// The main function of the process. `arguments`: kGpuReaderVerb, the pipe's descriptor, the interval in milliseconds, the
// library.
int ReadGpus(const std::vector<std::string>& arguments);

// `library`: of FindNvml.
std::vector<std::string> ReaderCommand(const std::string& library, std::chrono::milliseconds interval);

class GpuReader {
 public:
  struct Options {
    std::vector<std::string> command;  // the program, then its arguments; the pipe is descriptor kPipe
    std::chrono::milliseconds interval{5'000};
    // How long the process may be silent: before its first message, for which the driver may have to wake up all devices, and
    // beyond the interval.
    std::chrono::milliseconds first_patience{60'000};
    std::chrono::milliseconds patience{10'000};
    std::chrono::milliseconds min_backoff{5'000};
    std::chrono::milliseconds max_backoff{300'000};
  };
  static constexpr int kPipe = 3;
  static constexpr size_t kMaxXids = 1000;  // that wait for Take; more are counted as lost

  struct News {
    std::shared_ptr<const GpuSample> sample;  // the newest; null: there is none
    std::chrono::steady_clock::time_point sampled_at;
    std::vector<GpuXid> xids;  // since the last Take
    bool runs = false;         // the process runs, and has sent its first sample
    uint64_t restarts = 0;     // after the process ended or was killed
  };

  explicit GpuReader(Options options);
  ~GpuReader() { Stop(); }
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  // Throws std::system_error if the system cannot start a thread.
  void Start();
  // Kills the process, and waits for its end, for at most 200 ms.
  void Stop();
  [[nodiscard]] News Take();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The kind of the bad state (StateLog), and its sentence.
  using Ending = std::pair<std::string, std::string>;

  void Run();
  Ending RunProcess();
  // An error, or empty.
  std::string Spawn(OwnedFd& pipe);
  Ending ReadPipe(int pipe);
  void Note(GpuMessage message);
  // Ends the process and reaps it. How it ended; empty: it has not ended within `patience`.
  std::string End(std::chrono::milliseconds patience);
  // False: the reader is to stop.
  bool Sleep(std::chrono::milliseconds time);

  const Options options_;
  OwnedFd stop_;
  std::thread thread_;

  // Used by the thread alone.
  pid_t pid_ = -1;
  bool is_killed_ = false;
  Backoff backoff_;
  std::string problem_;  // that the process has reported
  StateLog log_{"gpu"};

  Mutex mutex_;
  News news_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
