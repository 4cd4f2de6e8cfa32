#include "remote/series_table.h"

#include <cstring>

namespace persia::agent {
namespace {

constexpr size_t kFirstSlots = 64;

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9e37'79b9'7f4a'7c15;
  x ^= x >> 29;
  x *= 0xbf58'476d'1ce4'e5b9;
  return x ^ (x >> 32);
}

uint64_t Hash(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() >= sizeof hash; bytes.remove_prefix(sizeof hash)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = Mix(hash ^ word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return Mix(hash ^ rest);
}

}  // namespace

bool SeriesTable::Add(std::string_view labels) {
  if (2 * (size() + 1) > slots_.size()) Grow();
  const uint64_t hash = Hash(labels);
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & (slots_.size() - 1)) {
    if (hashes_[slots_[slot]] == hash && this->labels(slots_[slot]) == labels) return false;
  }
  slots_[slot] = static_cast<uint32_t>(size());
  text_ += labels;
  ends_.push_back(text_.size());
  hashes_.push_back(hash);
  return true;
}

std::optional<uint32_t> SeriesTable::Find(std::string_view labels) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t hash = Hash(labels);
  for (size_t slot = hash & (slots_.size() - 1); slots_[slot] != kEmpty; slot = (slot + 1) & (slots_.size() - 1)) {
    if (hashes_[slots_[slot]] == hash && this->labels(slots_[slot]) == labels) return slots_[slot];
  }
  return std::nullopt;
}

void SeriesTable::Grow() {
  slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), kEmpty);
  for (size_t i = 0; i < size(); ++i) {
    size_t slot = hashes_[i] & (slots_.size() - 1);
    while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(i);
  }
}

}  // namespace persia::agent
