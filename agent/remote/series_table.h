// Series by their encoded labels: each once, numbered as they come.
//
// All labels stand in one string, so that a million series are a few allocations, and that writing them out walks memory
// forwards. Thread safety: none.
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
  // False, and nothing is added, if it is there already.
  bool Add(std::string_view labels);
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view labels) const;
  [[nodiscard]] size_t size() const { return hashes_.size(); }
  [[nodiscard]] std::string_view labels(size_t series) const {
    return std::string_view(text_).substr(ends_[series], ends_[series + 1] - ends_[series]);
  }
  // Evenly spread over all bits.
  [[nodiscard]] uint64_t hash(size_t series) const { return hashes_[series]; }

 private:
  static constexpr uint32_t kEmpty = 0xffff'ffff;

  void Grow();

  std::string text_;
  std::vector<uint64_t> ends_{0};  // of each series in text_, after the beginning of the first
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;  // a power of two of them, at most half of them used; by hash, then the next that is free
};

}  // namespace persia::agent
