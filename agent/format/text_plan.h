// The part of an exposition text that the layout alone decides, and how to fill in the values.
//
// A plan is a list of families, each with its HELP and TYPE lines, its series, and for each line of a series the prefix
// `name{labels} `. All prefixes stand in one string in the order in which they are printed, so that printing walks memory
// forwards. Used by TextRenderer alone.
//
// Thread safety: immutable once filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

using FamilyNames = std::set<std::string, std::less<>>;

// What one family came to in a text. A family of which nothing is shown has none.
struct FamilyText {
  const FamilyLayout* family = nullptr;  // lives as long as the layout
  size_t bytes = 0;
  size_t series = 0;
};

class TextPlan {
 public:
  // Adds a series. All series of a family come one after another. `identity` stands on each line if it is not null.
  void Add(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity);
  // Gives back what filling took too much.
  void Finish();

  // Replaces `out` by the text for these values of the layout that the plan was made of.
  // `leave_out`: families that are not to be in it; `families`, if not null, is told what those that are came to.
  void Print(const std::vector<double>& values, std::string& out, const FamilyNames& leave_out = {},
             std::vector<FamilyText>* families = nullptr) const;

 private:
  struct Family {
    const FamilyLayout* layout;
    MetricType type;
    uint32_t header_size;  // of the HELP and TYPE lines, in text_
    size_t series_count;
    size_t values_per_series;
  };

  void BeginFamily(const FamilyLayout& family);
  void AddLine(std::string_view name, std::string_view suffix, const SeriesLabels& labels, const Identity* identity,
               std::string_view extra_name = {}, std::string_view extra_value = {});

  const FamilyLayout* current_ = nullptr;  // the family that is being filled
  std::vector<Family> families_;
  std::string text_;                    // headers and prefixes in print order
  std::vector<uint32_t> prefix_sizes_;  // of each line
  std::vector<size_t> first_values_;    // of each series
};

}  // namespace persia::agent
