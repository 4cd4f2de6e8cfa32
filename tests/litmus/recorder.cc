#include "recorder.h"

#include <algorithm>
#include <cstring>

#include "threads.h"

namespace persia::litmus {
namespace {

bool Acquires(int order) {
  return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}
bool Releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }

// Of a thread of the program: half of its loads that may be old are.
uint32_t PickForProgram(uint32_t count) {
  Random& random = Recorder::Get().random();
  return random.OneIn(2) ? random.Below(count) : count - 1;
}

}  // namespace

Recorder& Recorder::Get() {
  static Recorder recorder;
  return recorder;
}

void Recorder::Begin(uint64_t seed) {
  random_ = Random(seed);
  SetCurrentThread(0);
}

void Recorder::End() {
  Now();
  SetCurrentThread(kNotRecorded);
}

void Recorder::SegmentHas(uint64_t offset, uint64_t bytes) {
  if (!memory_.HasSegment()) return;
  if (copy_.empty()) copy_.resize(memory_.bytes() / sizeof(uint64_t));
  allocated_.emplace_back(offset, bytes);
}

void Recorder::SegmentWasNamed() {
  Now();
  named_ = memory_.Release(CurrentThread());
  named_at_ = memory_.now();
}

uint32_t Recorder::Now() {
  if (CurrentThread() != kNotRecorded) FindPlainWrites(CurrentThread());
  return memory_.now();
}

void Recorder::FindPlainWrites(ThreadId by) {
  constexpr size_t kStep = 512;
  for (const auto& [offset, bytes] : allocated_) {
    for (size_t step = offset; step < offset + bytes; step += kStep) {
      const auto* now = reinterpret_cast<const uint64_t*>(memory_.base() + step);
      uint64_t* before = copy_.data() + step / sizeof(uint64_t);
      if (std::memcmp(now, before, kStep) == 0) continue;
      for (size_t i = 0; i < kStep / sizeof(uint64_t); ++i) {
        if (now[i] == before[i]) continue;
        memory_.PlainStore(by, memory_.WordOf(now + i, 0), now[i]);
        before[i] = now[i];
      }
    }
  }
}

void Recorder::Before() {
  FindPlainWrites(CurrentThread());
  MayTurn(false);
}

uint64_t Recorder::Load(const volatile void* address, size_t bytes, uint64_t actual, int order) {
  NoteLoad(address, bytes);
  return memory_.Load(CurrentThread(), memory_.WordOf(address, actual), actual, Acquires(order), &PickForProgram);
}

void Recorder::LoadNewest(const volatile void* address, size_t bytes, uint64_t actual, int order) {
  NoteLoad(address, bytes);
  memory_.Load(CurrentThread(), memory_.WordOf(address, actual), actual, Acquires(order),
               [](uint32_t count) { return count - 1; });
}

void Recorder::NoteLoad(const volatile void* address, size_t bytes) {
  races_.Access(CurrentThread(), address, bytes, /*write=*/false, /*atomic=*/true);
  if (IsPart(address, bytes)) Claim("an atomic load of a part of a word of the segment is not modelled");
}

void Recorder::Store(const volatile void* address, size_t bytes, uint64_t actual, uint64_t value, int order) {
  races_.Access(CurrentThread(), address, bytes, /*write=*/true, /*atomic=*/true);
  if (IsPart(address, bytes)) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const size_t shift = at % sizeof(uint64_t) * 8;
    const uint64_t part = ((uint64_t{1} << bytes * 8) - 1) << shift;
    address = reinterpret_cast<const volatile void*>(at - at % sizeof(uint64_t));
    actual = *static_cast<const volatile uint64_t*>(address);
    value = (actual & ~part) | (value << shift & part);
  }
  memory_.StoreTo(CurrentThread(), memory_.WordOf(address, actual), actual, value, Releases(order));
  if (memory_.InSegment(address)) copy_[(reinterpret_cast<const volatile std::byte*>(address) - memory_.base()) / 8] = value;
}

void Recorder::Update(const volatile void* address, size_t bytes, uint64_t actual, uint64_t value, int order) {
  races_.Access(CurrentThread(), address, bytes, /*write=*/true, /*atomic=*/true);
  if (IsPart(address, bytes)) Claim("an atomic update of a part of a word of the segment is not modelled");
  memory_.Update(CurrentThread(), memory_.WordOf(address, actual), actual, value, Acquires(order), Releases(order));
  if (memory_.InSegment(address)) copy_[(reinterpret_cast<const volatile std::byte*>(address) - memory_.base()) / 8] = value;
}

void Recorder::Plain(const volatile void* address, size_t bytes, bool write) {
  if (IsOnStack(address) || memory_.InSegment(address)) return;
  races_.Access(CurrentThread(), address, bytes, write, /*atomic=*/false);
}

std::string Recorder::SegmentImage() const {
  std::string image(memory_.bytes(), '\0');
  for (const auto& [offset, bytes] : allocated_) {
    std::memcpy(image.data() + offset, memory_.base() + offset, bytes);
  }
  return image;
}

std::string Recorder::Wrong() const {
  return !wrong_.empty() ? wrong_ : !races_.found().empty() ? races_.found() : memory_.unordered();
}

}  // namespace persia::litmus
