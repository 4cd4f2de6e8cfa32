// A program that computes something, and meanwhile uses all of the library. Prints its own results and its counts.
//
//   scenario [bare] [late] [wait]
//
// bare: without the library; the output is the same, since the library must not change it. late: calls Init in the middle, so
// that metrics move from private memory to a file; else the environment opts in. All that the program needs, including its
// threads, exists before the first use of the library: under a limit, only the library's requests fail.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <semaphore>
#include <thread>
#include <vector>

#include "metrics.h"
#include "own.h"
#include "scope.h"

namespace {

using faults::Compute;
using faults::Fail;
using faults::Ledger;
using faults::Library;
using faults::Metrics;
using faults::Print;
using faults::PrintState;

Ledger ledger;

// Never destroyed: it counts after main.
Metrics* metrics = nullptr;

void AfterMain() { metrics->AtEnd(); }

// A thread that waits for its turn, so that the order of all calls is fixed.
class Turn {
 public:
  explicit Turn(const char* number) : number_(number), thread_([this] { Run(); }) {}
  // To be called once. Returns when the kernel has released the thread, too: until then it counts for a limit on processes.
  void Take() {
    begin_.release();
    thread_.join();
    while (tgkill(getpid(), id_, 0) == 0) std::this_thread::yield();
  }

 private:
  void Run() {
    id_ = gettid();
    begin_.acquire();
    metrics->InThread(number_);
    Print("thread %s %.17g", number_, Compute(7));
  }

  const char* const number_;
  std::binary_semaphore begin_{0};
  pid_t id_ = 0;
  std::thread thread_;
};

void InChild() {
  Print("pid child %d", getpid());
  ledger.Clear();
  metrics->InChild();
  Print("child %.17g", Compute(11));
  PrintState("child");
  ledger.Print("child");
  _exit(7);
}

void Fork() {
  pid_t child = -1;
  if (faults::bare) {
    child = fork();
  } else {
    Library([&] { child = fork(); });  // the library's fork handlers run
  }
  if (child < 0) Fail("fork");
  if (child == 0) {
    InChild();
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) Fail("waitpid");
  Print("the child's status %x", status);
}

void Init() {
  const char* directory = std::getenv("FAULTS_DIRECTORY");
  static const auto& options = *new persia::metrics::Options{
      .job_name = "faults", .role = "trainer", .labels = {{"zone", "a"}}, .metrics_dir = directory == nullptr ? "" : directory};
  Library([] { persia::metrics::Init(options); });
}

// Until the standard input ends.
void CountOn() {
  std::atomic<bool> stop = false;
  std::array<int, 3> times{};
  std::vector<std::thread> threads;
  for (int& each : times) {
    threads.emplace_back([&] { each = metrics->CountUntil(stop); });
  }
  constexpr char kWaits[] = "waits\n";
  if (write(STDERR_FILENO, kWaits, sizeof kWaits - 1) < 0) Fail("stderr");
  char end = 0;
  while (read(STDIN_FILENO, &end, 1) > 0) {
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  metrics->EnterLoad(std::accumulate(times.begin(), times.end(), 0));
}

}  // namespace

int main(int argc, char** argv) {
  bool late = false;
  bool wait = false;
  for (int i = 1; i < argc; ++i) {
    faults::bare = faults::bare || std::strcmp(argv[i], "bare") == 0;
    late = late || std::strcmp(argv[i], "late") == 0;
    wait = wait || std::strcmp(argv[i], "wait") == 0;
  }
  Print("pid parent %d", getpid());
  metrics = new Metrics(ledger);
  if (std::atexit(&AfterMain) != 0) Fail("atexit");
  {
    Turn first("1");
    Turn second("2");
    Print("first %.17g", Compute(1));
    metrics->Instruments();
    first.Take();
    if (late) {
      Init();
    }
    metrics->Families();
    metrics->Streams();
    metrics->Events();
    metrics->CApi();
    Fork();
    second.Take();
    metrics->Grow();
    if (wait) {
      CountOn();
    }
    metrics->ExpectEnd();
  }
  Print("last %.17g", Compute(3));
  PrintState("parent");
  ledger.Print("parent");
}
