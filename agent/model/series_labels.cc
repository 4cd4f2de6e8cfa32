#include "model/series_labels.h"

#include <cstring>

namespace persia::agent {

// packed:  bytes uint32, labels uint32, then for each label: name size uint32, value size uint32, name, value
// bytes:   the size of all of it
namespace {

uint32_t ReadNumber(const char* at) {
  uint32_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

char* WriteNumber(char* to, size_t value) {
  const auto number = static_cast<uint32_t>(value);
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

char* WriteText(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);

}  // namespace

SeriesLabels::SeriesLabels(const Labels& labels) {
  if (labels.empty()) return;
  size_t bytes = kHeadBytes;
  for (const auto& [name, value] : labels) bytes += kHeadBytes + name.size() + value.size();
  auto packed = std::make_shared<char[]>(bytes);
  char* to = WriteNumber(WriteNumber(packed.get(), bytes), labels.size());
  for (const auto& [name, value] : labels) {
    to = WriteNumber(WriteNumber(to, name.size()), value.size());
    to = WriteText(WriteText(to, name), value);
  }
  packed_ = std::move(packed);
}

void SeriesLabels::const_iterator::Read() {
  if (left_ == 0) return;
  const size_t name = ReadNumber(at_);
  const size_t value = ReadNumber(at_ + sizeof(uint32_t));
  at_ += kHeadBytes;
  label_ = {{at_, name}, {at_ + name, value}};
  at_ += name + value;
}

SeriesLabels::const_iterator SeriesLabels::begin() const {
  return packed_ == nullptr ? const_iterator() : const_iterator(packed_.get() + kHeadBytes, static_cast<uint32_t>(size()));
}

size_t SeriesLabels::size() const { return packed_ == nullptr ? 0 : ReadNumber(packed_.get() + sizeof(uint32_t)); }

Labels SeriesLabels::ToList() const {
  Labels list;
  list.reserve(size());
  for (const auto& [name, value] : *this) list.emplace_back(name, value);
  return list;
}

size_t SeriesLabels::bytes() const { return packed_ == nullptr ? 0 : ReadNumber(packed_.get()); }

bool operator==(const SeriesLabels& a, const SeriesLabels& b) {
  if (a.packed_ == b.packed_ || a.packed_ == nullptr || b.packed_ == nullptr) return a.packed_ == b.packed_;
  const uint32_t bytes = ReadNumber(a.packed_.get());
  return bytes == ReadNumber(b.packed_.get()) && std::memcmp(a.packed_.get(), b.packed_.get(), bytes) == 0;
}

bool operator<(const SeriesLabels& a, const SeriesLabels& b) {
  auto at_a = a.begin();
  auto at_b = b.begin();
  for (; at_a != a.end() && at_b != b.end(); ++at_a, ++at_b) {
    if (const int order = at_a->first.compare(at_b->first); order != 0) return order < 0;
    if (const int order = at_a->second.compare(at_b->second); order != 0) return order < 0;
  }
  return at_b != b.end();
}

}  // namespace persia::agent
