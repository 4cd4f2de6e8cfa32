// Loads a plugin, counts through it in several threads, and unloads it while they live.
//
//   plugin_host PLUGIN TIMES     loads, counts and unloads TIMES times
//
// After the plugin is unloaded, a thread that counted ends, another one starts, and the process forks. The host itself does not
// know the library. Prints its counts.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <semaphore>
#include <thread>

#include "own.h"

namespace {

using faults::Fail;
using faults::Ledger;
using faults::Print;

Ledger ledger;

void Count(void* plugin) {
  auto* count = reinterpret_cast<void (*)()>(dlsym(plugin, "CountInPlugin"));
  if (count == nullptr) Fail("the plugin has no CountInPlugin");
  count();
  ledger.Add("plugin/calls", 1);
  ledger.Add("plugin/sizes:count", 1);
  ledger.Add("plugin/sizes:sum", 1);
  ledger.Add("plugin/called:events", 1);
}

void Fork() {
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child == 0) {
    std::thread([] {}).join();
    _exit(7);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) Fail("waitpid");
  Print("the child's status %x", status);
}

void LoadAndUnload(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) Fail(dlerror());
  Count(plugin);
  std::binary_semaphore counted{0};
  std::binary_semaphore unloaded{0};
  std::thread thread([&] {
    Count(plugin);
    counted.release();
    unloaded.acquire();
  });
  counted.acquire();
  if (dlclose(plugin) != 0) Fail(dlerror());
  unloaded.release();
  thread.join();
  std::thread([] {}).join();
  Fork();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    LoadAndUnload(argv[1]);
  }
  Print("pid parent %d", getpid());
  ledger.Print("parent");
}
