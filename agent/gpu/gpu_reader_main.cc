// The process: it loads the driver's library, reads all devices once an interval, and waits for their errors in between.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "gpu/gpu_look.h"
#include "gpu/gpu_reader.h"
#include "gpu/gpu_sample.h"
#include "gpu/nvml_library.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// Far more than a driver's library needs, and little enough that a leak does not harm the job.
constexpr rlim_t kMaxMemory = 1ULL << 30;
constexpr int kNice = 10;
constexpr milliseconds kLongestWait(1000);

void LimitItself() {
  // It ends with the agent's thread that started it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "gpu reader");
  const struct rlimit none { 0, 0 };
  setrlimit(RLIMIT_CORE, &none);
  const struct rlimit memory { kMaxMemory, kMaxMemory };
  setrlimit(RLIMIT_DATA, &memory);
  setpriority(PRIO_PROCESS, 0, kNice);
}

bool NothingReads(int pipe) {
  struct pollfd end {
    .fd = pipe, .events = 0, .revents = 0
  };
  return poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

// The pipe holds less than a message; a write waits until the agent reads. False: nothing reads any more.
bool Send(int pipe, const GpuMessage& message) {
  const std::string bytes = EncodeGpuMessage(message);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = write(pipe, rest.data(), rest.size());
    if (written < 0) return false;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int ReadGpus(const std::vector<std::string>& arguments) {
  constexpr size_t kArguments = 4;
  int pipe = -1;
  int64_t interval_ms = 0;
  if (arguments.size() != kArguments || !ParseNumber(arguments[1], pipe) || !ParseNumber(arguments[2], interval_ms) ||
      fcntl(pipe, F_GETFD) < 0 || interval_ms <= 0)
    return 2;  // called by hand
  LimitItself();
  if (NothingReads(pipe)) return 0;  // the agent may have ended before PR_SET_PDEATHSIG was set
  NvmlLibrary library;
  Status loaded = library.Load(arguments[3]);
  GpuLook look(library.call());
  if (loaded.ok()) loaded = look.Open();
  if (!loaded.ok()) {
    Send(pipe, GpuProblem{OneLine(loaded.error()).substr(0, GpuMessages::kMaxTextBytes)});
    return 1;
  }
  const milliseconds interval(interval_ms);
  auto due = std::chrono::steady_clock::now();
  for (;;) {
    if (!Send(pipe, look.Sample())) return 0;
    // Samples that are overdue are left out.
    due = std::max(due + interval, std::chrono::steady_clock::now() + interval / 10);
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(due - std::chrono::steady_clock::now());
      if (left.count() <= 0) break;
      const auto xid = look.WaitForXid(std::min(left, kLongestWait));
      if (xid && !Send(pipe, *xid)) return 0;
    }
  }
}

}  // namespace persia::agent
