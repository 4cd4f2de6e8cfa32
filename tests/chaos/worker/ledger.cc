#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace chaos {
namespace {

constexpr uint64_t kMagic = 0x5245474445'4c4843;
constexpr size_t kHeaderBytes = 4096;
static_assert(sizeof(LedgerHeader) <= kHeaderBytes);

void* MapOrDie(int fd, size_t bytes, int protection, const std::string& path) {
  void* memory = fd < 0 ? MAP_FAILED : mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    std::perror(path.c_str());
    std::_Exit(70);
  }
  close(fd);
  return memory;
}

}  // namespace

Ledger::Ledger(const std::string& directory, const std::string& role, int replica, uint32_t cells) {
  const std::string path = directory + "/" + std::to_string(getpid()) + ".ledger";
  const std::string draft = path + ".draft";
  const size_t bytes = kHeaderBytes + size_t{kSlots} * 2 * cells * sizeof(Slot::Cell);
  // There may be one of a process with the same pid that was killed while it made it.
  const int fd = open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd >= 0 && posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) {
    std::fprintf(stderr, "chaos worker: no space for %s\n", draft.c_str());
    std::_Exit(70);
  }
  header_ = static_cast<LedgerHeader*>(MapOrDie(fd, bytes, PROT_READ | PROT_WRITE, draft));
  header_->magic = kMagic;
  header_->pid = static_cast<uint32_t>(getpid());
  header_->slots = kSlots;
  header_->cells = cells;
  header_->replica = replica;
  std::strncpy(header_->role, role.c_str(), sizeof(header_->role) - 1);
  if (rename(draft.c_str(), path.c_str()) != 0) {
    std::perror(path.c_str());
    std::_Exit(70);
  }
}

Slot Ledger::SlotOf(uint32_t slot) const {
  auto* cells = reinterpret_cast<Slot::Cell*>(reinterpret_cast<std::byte*>(header_) + kHeaderBytes);
  Slot::Cell* before = cells + size_t{slot} * 2 * header_->cells;
  return {before, before + header_->cells};
}

const Control& OpenControl(const std::string& directory) {
  const std::string path = directory + "/control";
  return *static_cast<const Control*>(MapOrDie(open(path.c_str(), O_RDONLY | O_CLOEXEC), sizeof(Control), PROT_READ, path));
}

}  // namespace chaos
