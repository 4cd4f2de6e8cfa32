// Text exposition format 0.0.4, the part that is written here:
//
//   text   := family*
//   family := [ "# HELP " name " " help LF ] "# TYPE " name " " type LF line+
//   line   := name [ "{" label ( "," label )* "}" ] " " number LF
//   label  := name "=" '"' value '"'
//
// In help, `\` and LF are written `\\` and `\n`; in a label's value `"` is written `\"` as well. A histogram `x` has lines
// `x_bucket` with cumulative counts, the label `le` last, then `x_sum` and `x_count`; a summary `x` has lines `x` with the
// label `quantile`, then `x_sum` and `x_count`.
#include "format/text_plan.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "format/number.h"

namespace persia::agent {
namespace {

void AppendEscaped(std::string& out, std::string_view text, bool escape_quotes) {
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && escape_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

bool IsAbsent(double value) { return std::bit_cast<uint64_t>(value) == kAbsent; }

// Prints lines, walking the prefixes of a plan forwards.
class Printer {
 public:
  Printer(const char* text, const uint32_t* prefix_size, char* out) : text_(text), prefix_size_(prefix_size), out_(out) {}

  void Copy(size_t size) {
    std::memcpy(out_, text_, size);
    out_ += size;
    text_ += size;
  }
  void Line(double value) {
    Copy(*prefix_size_++);
    out_ = PrintNumber(out_, value);
    *out_++ = '\n';
  }
  void Skip(size_t size) { text_ += size; }
  void SkipLines(size_t lines) {
    for (; lines > 0; --lines) text_ += *prefix_size_++;
  }

  // `values`: the sum, then the count of each bucket.
  void Histogram(const double* values, size_t buckets) {
    double count = 0;
    for (size_t i = 1; i <= buckets; ++i) Line(count += values[i]);
    Line(values[0]);
    Line(count);
  }
  // `values`: the sum, the count, then one a quantile.
  void Summary(const double* values, size_t quantiles) {
    for (size_t i = 0; i < quantiles; ++i) {
      if (IsAbsent(values[2 + i])) {
        SkipLines(1);
      } else {
        Line(values[2 + i]);
      }
    }
    Line(values[0]);
    Line(values[1]);
  }

  [[nodiscard]] char* position() const { return out_; }
  void set_position(char* out) { out_ = out; }

 private:
  const char* text_;
  const uint32_t* prefix_size_;
  char* out_;
};

size_t LinesPerSeries(MetricType type, size_t values_per_series) {
  // A histogram's count is a line, and no value of its own.
  return type == MetricType::kHistogram ? values_per_series + 1 : values_per_series;
}

}  // namespace

void TextPlan::Add(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity) {
  if (current_ != &family) BeginFamily(family);
  ++families_.back().series_count;
  first_values_.push_back(series.first_value);
  switch (family.type) {
    case MetricType::kHistogram:
      for (double bound : family.bounds) {
        AddLine(family.name, "_bucket", series.labels, identity, "le", LabelText(bound));
      }
      AddLine(family.name, "_bucket", series.labels, identity, "le", "+Inf");
      break;
    case MetricType::kSummary:
      for (double quantile : family.bounds) {
        AddLine(family.name, "", series.labels, identity, "quantile", LabelText(quantile));
      }
      break;
    default:
      AddLine(family.name, "", series.labels, identity);
      return;
  }
  AddLine(family.name, "_sum", series.labels, identity);
  AddLine(family.name, "_count", series.labels, identity);
}

void TextPlan::BeginFamily(const FamilyLayout& family) {
  current_ = &family;
  const size_t begin = text_.size();
  if (!family.help.empty()) {
    text_ += "# HELP " + family.name + ' ';
    AppendEscaped(text_, family.help, /*escape_quotes=*/false);
    text_ += '\n';
  }
  text_ += "# TYPE " + family.name + ' ';
  text_ += TypeName(family.type);
  text_ += '\n';
  families_.push_back({.layout = &family,
                       .type = family.type,
                       .header_size = static_cast<uint32_t>(text_.size() - begin),
                       .series_count = 0,
                       .values_per_series = family.ValuesPerSeries()});
}

void TextPlan::AddLine(std::string_view name, std::string_view suffix, const SeriesLabels& labels, const Identity* identity,
                       std::string_view extra_name, std::string_view extra_value) {
  const size_t begin = text_.size();
  text_ += name;
  text_ += suffix;
  char separator = '{';
  const auto add_label = [&](std::string_view label, std::string_view value) {
    text_ += separator;
    text_ += label;
    text_ += "=\"";
    AppendEscaped(text_, value, /*escape_quotes=*/true);
    text_ += '"';
    separator = ',';
  };
  if (identity != nullptr) {
    add_label("job", identity->job);
    for (const auto& [label, value] : identity->labels) add_label(label, value);
  }
  for (const auto& [label, value] : labels) add_label(label, value);
  if (!extra_name.empty()) add_label(extra_name, extra_value);
  if (separator == ',') text_ += '}';
  text_ += ' ';
  prefix_sizes_.push_back(static_cast<uint32_t>(text_.size() - begin));
}

void TextPlan::Finish() {
  current_ = nullptr;
  families_.shrink_to_fit();
  text_.shrink_to_fit();
  prefix_sizes_.shrink_to_fit();
  first_values_.shrink_to_fit();
}

void TextPlan::Print(const std::vector<double>& values, std::string& out, const FamilyNames& leave_out,
                     std::vector<FamilyText>* families) const {
  if (families != nullptr) families->clear();
  // Room for the longest text there can be; the string keeps it for the next time. What it has is not copied to a larger one.
  const size_t most = text_.size() + prefix_sizes_.size() * (kMaxNumberSize + 1) + kNumberRoom;
  if (out.capacity() < most) out = std::string();
  out.resize(most);
  Printer printer(text_.data(), prefix_sizes_.data(), out.data());
  const size_t* first_value = first_values_.data();
  for (const Family& family : families_) {
    if (!leave_out.empty() && leave_out.contains(family.layout->name)) {
      printer.Skip(family.header_size);
      printer.SkipLines(family.series_count * LinesPerSeries(family.type, family.values_per_series));
      first_value += family.series_count;
      continue;
    }
    size_t series = family.series_count;
    char* const begin = printer.position();
    printer.Copy(family.header_size);
    char* const first_line = printer.position();
    for (size_t i = 0; i < family.series_count; ++i) {
      const double* value = values.data() + *first_value++;
      if (IsAbsent(*value)) {
        --series;
        printer.SkipLines(LinesPerSeries(family.type, family.values_per_series));
      } else if (family.type == MetricType::kHistogram) {
        printer.Histogram(value, family.values_per_series - 1);
      } else if (family.type == MetricType::kSummary) {
        printer.Summary(value, family.values_per_series - 2);
      } else {
        printer.Line(*value);
      }
    }
    if (printer.position() == first_line) {
      printer.set_position(begin);
    } else if (families != nullptr) {
      families->push_back({family.layout, static_cast<size_t>(printer.position() - begin), series});
    }
  }
  out.resize(static_cast<size_t>(printer.position() - out.data()));
}

}  // namespace persia::agent
