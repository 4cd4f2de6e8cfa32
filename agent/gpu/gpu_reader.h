// The process that calls the driver's library for the agent, and the agent's thread that supervises it.
//
//   GpuReader reader(ReaderOptions(library, interval));
//   reader.Start();
//   GpuReader::News news = reader.Take();            // at each collection; never waits
//   reader.AskToStop();
//   if (reader.HasEnded()) ...                       // neither does this
//
// A call into a driver may take seconds, hang, or crash. So a process of its own makes it: the agent's program, with the first
// argument kGpuReaderVerb. It writes messages (gpu_sample.h) into a pipe, which the thread reads. If the process is silent for
// too long, ends, or writes bytes that are no message, the thread kills it, and starts it again after a backoff. A process that
// has run as long as the longest backoff is taken to work: only then does the backoff begin anew, and the log say that it is
// over. There is never more than one process of a reader: while the kernel has not ended a killed process, none is started.
//
// Thread safety: Take: any thread; all else: one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/owned_fd.h"
#include "base/timing.h"
#include "gpu/gpu_sample.h"

namespace persia::agent {

inline constexpr char kGpuReaderVerb[] = "gpu-reader";

// The main function of the process. `arguments`: kGpuReaderVerb, the pipe's descriptor, the interval in milliseconds, the
// library.
int ReadGpus(const std::vector<std::string>& arguments);

class GpuReader {
 public:
  struct Options {
    std::vector<std::string> command;  // the program, then its arguments; the pipe is descriptor kPipe
    std::chrono::milliseconds interval{5'000};
    // How long the process may be silent: before its first message, for which the driver may have to wake up all devices, and
    // beyond the interval. `patience` is also how long the process may take to end; after that it is said to hang.
    std::chrono::milliseconds first_patience{60'000};
    std::chrono::milliseconds patience{10'000};
    std::chrono::milliseconds min_backoff{5'000};
    std::chrono::milliseconds max_backoff{300'000};
    // How long Stop waits for the end of the process; a call that hangs in the kernel delays it.
    std::chrono::milliseconds stop_patience{200};
    // As waitpid(2) with WNOHANG; for tests.
    std::function<pid_t(pid_t process, int* status)> reap = {};
  };
  static constexpr int kPipe = 3;
  static constexpr size_t kMaxXids = 1000;  // that wait for Take; more are dropped

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
  // The same without waiting: the thread does it.
  void AskToStop();
  // After AskToStop: whether the process has ended and is reaped.
  [[nodiscard]] bool HasEnded();
  [[nodiscard]] News Take();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The kind of the bad state (StateLog), and its sentence.
  using Ending = std::pair<std::string, std::string>;

  void Run();
  void Supervise();
  Ending RunProcess();
  // An error, or empty.
  std::string Spawn(OwnedFd& pipe);
  Ending ReadPipe(int pipe);
  void Note(GpuMessage message);
  // Kills the process, and reaps it if it has ended. How it ended; empty: it has not.
  std::string End();
  // The same, and waits for its end, for at most `patience`; after AskToStop, for at most stop_patience.
  std::string WaitForEnd(std::chrono::milliseconds patience);
  // False: the reader is to stop.
  bool Sleep(std::chrono::milliseconds time);

  const Options options_;
  OwnedFd stop_;
  std::thread thread_;

  // Used by the thread alone, and after its end by HasEnded.
  pid_t pid_ = -1;
  bool is_killed_ = false;
  Backoff backoff_;
  bool fails_ = false;                     // a process ended, and none has run for long since
  std::optional<TimePoint> first_sample_;  // of this process
  std::string problem_;                    // that the process has reported
  StateLog log_{"gpu"};

  Mutex mutex_;
  News news_ PERSIA_GUARDED_BY(mutex_);
  bool is_over_ PERSIA_GUARDED_BY(mutex_) = false;  // the thread needs nothing any more
};

// `library`: of FindNvml. The backoff is 5 seconds to 5 minutes; with an interval below a second, 5 to 300 intervals.
GpuReader::Options ReaderOptions(const std::string& library, std::chrono::milliseconds interval);

}  // namespace persia::agent
