// Labels of series, and which names they may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace persia::agent {

// Which names of metrics and labels all readers take, and are exposed here. Prometheus 3 alone takes any UTF-8 text as a name.
//
// Thread safety: pure functions.

// Of a metric: letters, digits, '_' and ':', no digit first.
[[nodiscard]] inline bool IsPlainName(std::string_view name) {
  return !name.empty() && !IsDigit(name[0]) &&
         std::all_of(
             name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
}

// Of a label: the same without ':'.
[[nodiscard]] inline bool IsPlainLabelName(std::string_view name) {
  return IsPlainName(name) && name.find(':') == std::string_view::npos;
}

// Labels as a list, for changes, and packed, for storage in layouts.

// Sorted by name, no name twice.
using Labels = std::vector<std::pair<std::string, std::string>>;

// The labels of one series, in one allocation that copies share: a job may have 100,000 series, in the layouts of the sources
// and in the merged one. Two labels take 80 bytes once; as a list, they take 190 bytes per copy.
//
//   for (const auto& [name, value] : series.labels) ...     // views, valid as long as any copy exists
//
// Thread safety: immutable.
class SeriesLabels {
 public:
  using value_type = std::pair<std::string_view, std::string_view>;

  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = SeriesLabels::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    const_iterator() = default;
    const_iterator(const char* at, uint32_t left) : at_(at), left_(left) { Read(); }
    reference operator*() const { return label_; }
    pointer operator->() const { return &label_; }
    const_iterator& operator++() {
      --left_;
      Read();
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) { return a.left_ == b.left_; }

   private:
    void Read();

    const char* at_ = nullptr;  // the end of label_
    uint32_t left_ = 0;         // labels from label_ on
    value_type label_;
  };
  using iterator = const_iterator;

  SeriesLabels() = default;
  SeriesLabels(const Labels& labels);  // NOLINT(google-explicit-constructor): the same value, packed

  [[nodiscard]] const_iterator begin() const;
  [[nodiscard]] const_iterator end() const { return {}; }
  [[nodiscard]] bool empty() const { return packed_ == nullptr; }
  [[nodiscard]] size_t size() const;
  [[nodiscard]] Labels ToList() const;
  // The size of the allocation that copies share.
  [[nodiscard]] size_t bytes() const;

  friend bool operator==(const SeriesLabels& a, const SeriesLabels& b);
  // As of the lists.
  friend bool operator<(const SeriesLabels& a, const SeriesLabels& b);

 private:
  std::shared_ptr<const char[]> packed_;  // null: no labels
};

}  // namespace persia::agent
