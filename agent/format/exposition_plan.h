// Renders the same series repeatedly. The bytes that depend on the layout alone are made once: a header for each family, and
// for each series one or more fixed parts, which precede its values. They are kept in one string, in the order of the output,
// so that a render copies them, fills in the values, and allocates nothing per series.
//
// The Format decides how bytes look (text_format.h, metric_messages.h). Only the renderers (scrape_renderer.h,
// group_renderer.h) use this header.
//
// Thread safety: immutable after Finish().
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

// The size of one rendered family. Families without a present value are not listed.
struct FamilySize {
  const FamilyLayout* family = nullptr;  // valid while the layout exists
  size_t bytes = 0;
  size_t series = 0;
};

struct FixedParts {
  std::string bytes;            // headers and parts
  std::vector<uint32_t> sizes;  // of the parts, without the headers

  // Makes a part of the bytes from `begin` to the end.
  void EndPart(size_t begin) { sizes.push_back(static_cast<uint32_t>(bytes.size() - begin)); }
};

// Calls `each(name, value)` for the labels of the identity, if it is not null, then for the labels of the series.
template <class Each>
void ForEachLabel(const SeriesLabels& labels, const Identity* identity, const Each& each) {
  if (identity != nullptr) {
    each(std::string_view("job"), std::string_view(identity->job));
    for (const auto& [name, value] : identity->labels) each(std::string_view(name), std::string_view(value));
  }
  for (const auto& [name, value] : labels) each(name, value);
}

// Copies headers and parts, in their order, to the output.
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

  // Of the next part, and of those after it.
  [[nodiscard]] uint32_t part_size(size_t next) const { return size_[next]; }
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
//   void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);
//   size_t PartsPerSeries(const FamilyLayout& family);
//   size_t MaxValueBytes(const FamilyLayout& family);  // an upper bound for the values of one series
//   size_t kFamilyBytes;                               // of a family, in addition to its header and series
//   bool kOneHeaderPerName;                            // consecutive families of one name share a header
//   char* BeginFamily(PartWriter& writer);             // returns where the family begins
//   void EndFamily(PartWriter& writer, char* begin);
//   void WriteSeries(PartWriter& writer, const FamilyLayout& family, const double* values);
template <class Format>
class ExpositionPlan {
 public:
  // Adds a series, with the labels of `identity` if it is not null. REQUIRES: the series of a family are added consecutively.
  void Add(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity) {
    if (current_ != &family) BeginFamily(family);
    ++families_.back().series_count;
    first_values_.push_back(series.first_value);
    max_other_bytes_ += Format::MaxValueBytes(family);
    Format::AppendSeries(family, series, identity, parts_);
  }
  // Call after the last Add.
  void Finish() {
    current_ = nullptr;
    families_.shrink_to_fit();
    parts_.bytes.shrink_to_fit();
    parts_.sizes.shrink_to_fit();
    first_values_.shrink_to_fit();
  }

  // Replaces `out` by the families, with `values` of the same layout, except those named in `leave_out`. `families`, if not
  // null, receives the size of each.
  void Write(const std::vector<double>& values, std::string& out, const FamilyNames& leave_out = {},
             std::vector<FamilySize>* families = nullptr) const {
    if (families != nullptr) families->clear();
    const size_t max_size = parts_.bytes.size() + max_other_bytes_;
    if (out.capacity() < max_size) out = std::string();  // else the old content would be copied
    out.resize(max_size);
    PartWriter writer(parts_, out.data());
    const size_t* first_value = first_values_.data();
    std::string_view last_name;  // of the families written
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
      const bool same_header = Format::kOneHeaderPerName && family.layout->name == last_name;
      same_header ? writer.SkipHeader(family.header_size) : writer.CopyHeader(family.header_size);
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
      last_name = family.layout->name;
      if (families != nullptr) families->push_back({family.layout, static_cast<size_t>(writer.position() - begin), shown});
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
    max_other_bytes_ += Format::kFamilyBytes;
    families_.push_back(
        {.layout = &family, .header_size = static_cast<uint32_t>(parts_.bytes.size() - begin), .series_count = 0});
  }

  const FamilyLayout* current_ = nullptr;  // the family of the last Add
  std::vector<Family> families_;
  FixedParts parts_;
  std::vector<size_t> first_values_;  // of each series
  size_t max_other_bytes_ = 0;        // an upper bound for all that is not in parts_
};

}  // namespace persia::agent
