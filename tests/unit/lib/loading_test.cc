// The library's place in a process: before and after main, and as a shared library that comes late.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "worker.h"

namespace persia::metrics::tests {
namespace {

class LoadingTest : public WorkerTest {
 protected:
  static void* Open(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw std::runtime_error(dlerror());
    }
    return handle;
  }
};

// Runs a program, which must succeed.
void RunProgram(const char* program) {
  const pid_t pid = fork();
  if (pid == 0) {
    execl(program, program, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0);
}

TEST_F(LoadingTest, CountsBeforeAndAfterMain) {
  const auto segment = SegmentOf([] { RunProgram(LIFETIME_PROGRAM); });
  EXPECT_EQ(segment.role, "lifetime");
  EXPECT_EQ(segment.series.at("lifetime/before main").whole, 4U);
  EXPECT_EQ(segment.series.at("lifetime/after main").whole, 2U);
  EXPECT_EQ(segment.series.at("lifetime/made after main{a=\"b\"}").fraction, 0.5);
  EXPECT_EQ(segment.series.at("lifetime/gauge").value, 2);
  EXPECT_EQ(segment.events.at(0).metadata, "text='after main';");
}

#ifdef STATIC_PROGRAM
TEST_F(LoadingTest, CountsInAProgramWithoutSharedLibraries) {
  EXPECT_EQ(SegmentOf([] { RunProgram(STATIC_PROGRAM); }).series.at("static/calls").whole, 1U);
}
#endif

// Static TLS is scarce for a library that comes by dlopen: a table in it made this fail.
TEST_F(LoadingTest, LoadsAfterFiftyLibrariesThatUseTls) {
  const auto segment = SegmentOf([] {
    for (int i = 1; i <= 50; ++i) {
      void* library = Open(std::string(TLS_LIBRARY_PREFIX) + std::to_string(i) + ".so");
      auto* touch = reinterpret_cast<long (*)()>(dlsym(library, ("Touch" + std::to_string(i)).c_str()));
      ASSERT_NE(touch, nullptr);
      ASSERT_EQ(touch(), i + 1);
    }
    void* plugin = Open(PLUGIN);
    auto* count = reinterpret_cast<void (*)(int)>(dlsym(plugin, "CountInPlugin"));
    ASSERT_NE(count, nullptr);
    count(1000);
    dlclose(plugin);
    // The library stays loaded after any dlclose: threads hold pointers into it.
    ASSERT_NE(dlopen(SHARED_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
  });
  EXPECT_EQ(segment.series.at("plugin/calls").whole, 2000U);
}

std::atomic<bool> plugin_is_closed = false;

// Threads hold pointers into the library, also into a static one in a plugin.
TEST_F(LoadingTest, APluginWithTheStaticLibraryStaysLoaded) {
  const auto segment = SegmentOf([] {
    void* plugin = Open(STATIC_PLUGIN);
    auto* count = reinterpret_cast<std::thread* (*)(void (*)())>(dlsym(plugin, "CountInStaticPlugin"));
    ASSERT_NE(count, nullptr);
    std::thread* thread = count([] { plugin_is_closed.wait(false); });
    dlclose(plugin);
    plugin_is_closed = true;
    plugin_is_closed.notify_one();
    thread->join();
    const pid_t child = fork();
    if (child == 0) {
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  });
  EXPECT_EQ(segment.series.at("plugin/calls").whole, 2U);
}

TEST_F(LoadingTest, TheSharedLibraryTakesOnePointerOfStaticTls) {
  std::ifstream file(SHARED_LIBRARY, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ElfW(Ehdr) header;
  ASSERT_GE(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  size_t tls_bytes = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + static_cast<size_t>(i) * header.e_phentsize, sizeof segment);
    if (segment.p_type == PT_TLS) {
      tls_bytes += segment.p_memsz;
    }
  }
  EXPECT_EQ(tls_bytes, sizeof(void*));
}

}  // namespace
}  // namespace persia::metrics::tests
