#include "private_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace persia::metrics {
inline namespace abi_1 {
namespace {

constexpr size_t kStaticPages = 16;
alignas(segment::kPageBytes) std::byte static_pages[kStaticPages * segment::kPageBytes];

}  // namespace

struct PrivateMemory::Block {
  Block* former;
};

void* PrivateMemory::NewPage() noexcept {
  if (pages_used_ == kBlockPages) {
    void* memory = mmap(nullptr, kBlockPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return static_pages_used_ == kStaticPages ? nullptr : static_pages + static_pages_used_++ * kPage;
    blocks_ = new (memory) Block{blocks_};
    pages_used_ = 1;
  }
  return reinterpret_cast<std::byte*>(blocks_) + pages_used_++ * kPage;
}

void PrivateMemory::ForgetAfterFork() noexcept {
  while (blocks_ != nullptr) {
    Block* block = blocks_;
    blocks_ = block->former;
    munmap(block, kBlockPages * kPage);
  }
  pages_used_ = kBlockPages;
  std::memset(static_pages, 0, static_pages_used_ * kPage);
  static_pages_used_ = 0;
}

}  // namespace abi_1
}  // namespace persia::metrics
