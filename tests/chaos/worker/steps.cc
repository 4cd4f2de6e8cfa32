#include "steps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace chaos {
namespace {

constexpr uint64_t kStepsPerCheckpoint = 64;

uint64_t Ns(clockid_t clock) {
  struct timespec time {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

LedgerHeader* exiting = nullptr;

// A shared mapping, so that a kill cannot lose it.
std::atomic<uint64_t>* Map(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* const mapped = file >= 0 && ftruncate(file, sizeof(uint64_t)) == 0
                           ? mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                           : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    std::perror(path.c_str());
    std::_Exit(70);
  }
  close(file);
  return static_cast<std::atomic<uint64_t>*>(mapped);
}

}  // namespace

Steps::Steps(const Ledger& ledger, const std::string& directory)
    : header_(ledger.header()),
      checkpoint_(Map(directory + "/" + header_.role + "-" + std::to_string(header_.replica) + ".checkpoint")),
      next_(checkpoint_->load()) {}

void Steps::Tell() {
  const uint64_t step = next_++;
  if (step % kStepsPerCheckpoint == 0) {
    const persia::metrics::InPhase in(saves_);
    checkpoint_->store(step);
  }
  if (header_.first_step == 0) header_.first_step = step + 1;
  header_.step_before = step + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  persia::metrics::SetStep(step);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  header_.step_after = step + 1;
}

void RecordExit(const Ledger& ledger) {
  exiting = &ledger.header();
  std::atexit([] { exiting->ended_ns = NowNs(); });
}

uint64_t NowNs() { return Ns(CLOCK_MONOTONIC); }

uint64_t StartedNs() {
  std::ifstream file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  const uint64_t ticks = std::strtoull(field.c_str(), nullptr, 10);
  const uint64_t since_boot = ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  return since_boot - (Ns(CLOCK_BOOTTIME) - NowNs());
}

}  // namespace chaos
