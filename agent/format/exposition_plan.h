// Writes the same series again and again: what the layout alone decides is made once, and a render copies that and fills the
// values in, walking memory forwards, without an allocation per series.
//
// How bytes look is the Format's to know (text_lines.h, metric_messages.h). Of each series it makes one or more fixed parts,
// the bytes that stand before a value; of each family a header. All of them stand in one string, in the order in which they are
// written. Used by the renderers (text_format.h, group_renderer.h) alone.
//
// Thread safety: immutable once filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

using FamilyNames = std::set<std::string, std::less<>>;

// What one family came to in what was written. A family of which nothing is shown has none.
struct FamilySize {
  const FamilyLayout* family = nullptr;  // lives as long as the layout
  size_t bytes = 0;
  size_t series = 0;
};

// Headers, and what stands before each value.
struct FixedParts {
  std::string bytes;
  std::vector<uint32_t> sizes;  // of the parts, without the headers

  // What was appended to `bytes` since it had this size is a part.
  void EndPart(size_t begin) { sizes.push_back(static_cast<uint32_t>(bytes.size() - begin)); }
};

// Calls with the name and the value of each label: the identity's first, if it is not null.
template <class Each>
void ForEachLabel(const SeriesLabels& labels, const Identity* identity, const Each& each) {
  if (identity != nullptr) {
    each(std::string_view("job"), std::string_view(identity->job));
    for (const auto& [name, value] : identity->labels) each(std::string_view(name), std::string_view(value));
  }
  for (const auto& [name, value] : labels) each(name, value);
}

// Where parts are read and where they go.
class PartWriter {
 public:
  PartWriter(const FixedParts& parts, char* out) : fixed_(parts.bytes.data()), size_(parts.sizes.data()), out_(out) {}

  void CopyHeader(size_t size) {
    std::memcpy(out_, fixed_, size);
    out_ += size;
    fixed_ += size;
  }
  void CopyPart() { CopyHeader(*size_++); }
  void SkipHeader(size_t size) { fixed_ += size; }
  void SkipParts(size_t parts) {
    for (; parts > 0; --parts) fixed_ += *size_++;
  }

  [[nodiscard]] uint32_t next_part_size() const { return *size_; }
  [[nodiscard]] char* position() const { return out_; }
  void set_position(char* out) { out_ = out; }

 private:
  const char* fixed_;
  const uint32_t* size_;
  char* out_;
};

// Format has these static members:
//
//   void AppendHeader(const FamilyLayout& family, std::string& out);
//
//   void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);
//
//   size_t PartsPerSeries(const FamilyLayout& family);
//
//   size_t MostBytes(const FamilyLayout& family);           // that the values of a series may come to
//
//   size_t kFamilyBytes;                                    // of a family, beside its header and series
//
//   size_t kRoom;                                           // that is wanted behind the end
//
//   char* BeginFamily(PartWriter& writer);                  // gives where it begins
//
//   void EndFamily(PartWriter& writer, char* begin);
//
//   void WriteSeries(PartWriter& writer, const FamilyLayout& family, const double* values);
template <class Format>
class ExpositionPlan {
 public:
  // Adds a series. All series of a family come one after another. `identity` stands on each series if it is not null.
  void Add(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity) {
    if (current_ != &family) BeginFamily(family);
    ++families_.back().series_count;
    first_values_.push_back(series.first_value);
    most_bytes_ += Format::MostBytes(family);
    Format::AppendSeries(family, series, identity, parts_);
  }
  // Gives back what filling took too much.
  void Finish() {
    current_ = nullptr;
    families_.shrink_to_fit();
    parts_.bytes.shrink_to_fit();
    parts_.sizes.shrink_to_fit();
    first_values_.shrink_to_fit();
  }

  // Replaces `out` by what these values of the layout come to of which the plan was made.
  // `leave_out`: families that are not to be in it; `families`, if not null, is told what those that are came to.
  void Write(const std::vector<double>& values, std::string& out, const FamilyNames& leave_out = {},
             std::vector<FamilySize>* families = nullptr) const {
    if (families != nullptr) families->clear();
    // Room for the most there can be; the string keeps it for the next time. What it has is not copied to a larger one.
    const size_t most = parts_.bytes.size() + most_bytes_ + Format::kRoom;
    if (out.capacity() < most) out = std::string();
    out.resize(most);
    PartWriter writer(parts_, out.data());
    const size_t* first_value = first_values_.data();
    for (const Family& family : families_) {
      const size_t parts_per_series = Format::PartsPerSeries(*family.layout);
      if (!leave_out.empty() && leave_out.contains(family.layout->name)) {
        writer.SkipHeader(family.header_size);
        writer.SkipParts(family.series_count * parts_per_series);
        first_value += family.series_count;
        continue;
      }
      size_t shown = 0;
      char* const begin = Format::BeginFamily(writer);
      writer.CopyHeader(family.header_size);
      for (size_t i = 0; i < family.series_count; ++i) {
        const double* value = values.data() + *first_value++;
        if (IsAbsent(*value)) {
          writer.SkipParts(parts_per_series);
        } else {
          ++shown;
          Format::WriteSeries(writer, *family.layout, value);
        }
      }
      if (shown == 0) {
        writer.set_position(begin);
        continue;
      }
      Format::EndFamily(writer, begin);
      if (families != nullptr) {
        families->push_back({family.layout, static_cast<size_t>(writer.position() - begin), shown});
      }
    }
    out.resize(static_cast<size_t>(writer.position() - out.data()));
  }

 private:
  struct Family {
    const FamilyLayout* layout;
    uint32_t header_size;  // in parts_.bytes
    size_t series_count;
  };

  void BeginFamily(const FamilyLayout& family) {
    current_ = &family;
    const size_t begin = parts_.bytes.size();
    Format::AppendHeader(family, parts_.bytes);
    most_bytes_ += Format::kFamilyBytes;
    families_.push_back(
        {.layout = &family, .header_size = static_cast<uint32_t>(parts_.bytes.size() - begin), .series_count = 0});
  }

  const FamilyLayout* current_ = nullptr;  // the family that is being filled
  std::vector<Family> families_;
  FixedParts parts_;
  std::vector<size_t> first_values_;  // of each series
  size_t most_bytes_ = 0;             // of all that is not in parts_
};

}  // namespace persia::agent
