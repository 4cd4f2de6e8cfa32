// Emits numbers to stdout or into a named pipe that it reads itself. Prints the status of each call, and the lines that
// arrived.
//
//   emit PATH      BENCHMARK_AI_FIFO_FILEPATH is PATH too
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "own.h"
#include "persia/metrics/emit.h"
#include "scope.h"

namespace {

using faults::Fail;
using faults::Print;

constexpr int kCalls = 6;

void PrintPipe(int pipe) {
  char text[4096];
  const ssize_t size = read(pipe, text, sizeof text);
  if (size > 0 && write(STDOUT_FILENO, text, static_cast<size_t>(size)) != size) Fail("stdout");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (mkfifo(argv[1], 0600) != 0) Fail("mkfifo");
  const int pipe = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (pipe < 0) Fail("the named pipe");
  for (int i = 0; i < kCalls; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "a name that does not fit into a small string, %d", i);
    persia::metrics::benchmarkai::EmitResult result;
    faults::Library([&] { result = persia::metrics::benchmarkai::Emit({{name, i + 0.5}, {"other", 1e300}}); });
    Print("status %d %d %s", i, static_cast<int>(result.status), result.ok() ? "done" : result.error.c_str());
    PrintPipe(pipe);
  }
}
