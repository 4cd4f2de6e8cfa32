// Numbers series by their encoded labels (with the mark of native histograms, see write_request.h), each once, in the order in
// which they are added.
//
// All labels are in one string, so that a million series take a few allocations, and writing them reads memory in order.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace persia::agent {

class SeriesTable {
 public:
  // False, and nothing is added, if the series exists.
  bool Add(std::string_view labels);
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view labels) const;
  [[nodiscard]] size_t size() const { return hashes_.size(); }
  [[nodiscard]] std::string_view labels(size_t series) const {
    return std::string_view(text_).substr(ends_[series], ends_[series + 1] - ends_[series]);
  }
  // Evenly spread over all bits.
  [[nodiscard]] uint64_t hash(size_t series) const { return hashes_[series]; }

 private:
  static constexpr uint32_t kFree = 0xffff'ffff;

  [[nodiscard]] size_t SlotOf(std::string_view labels, uint64_t hash) const;

  std::string text_;
  std::vector<uint64_t> ends_{0};  // ends_[i + 1] is where series i ends in text_
  std::vector<uint64_t> hashes_;
  // A hash table with linear probing. Its size is a power of two, at least twice the number of series.
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(64, kFree);
};

}  // namespace persia::agent
