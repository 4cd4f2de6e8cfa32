// The part of text exposition format 0.0.4 that is written here:
//
//   text   := family*
//   family := [ "# HELP " name " " help LF ] "# TYPE " name " " type LF line+
//   line   := name [ "{" label ( "," label )* "}" ] " " number LF
//   label  := name "=" '"' value '"'
//
// In help, `\` and LF are written `\\` and `\n`; in a label's value, `"` is also written `\"`. A histogram `x` has lines
// `x_bucket` with cumulative counts and the label `le` at the end, then `x_sum` and `x_count`, also if it is native: text has
// no native form. A summary `x` has lines `x` with the label `quantile` at the end, then `x_sum` and `x_count`.
#include "format/text_format.h"

#include <string_view>

namespace persia::agent {

void AppendEscaped(std::string& out, std::string_view text, bool escape_quotes) {
  for (char c : text)
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && escape_quotes)
      out += "\\\"";
    else
      out += c;
}

void TextFormat::AppendHeader(const FamilyLayout& family, std::string& out) {
  if (!family.help.empty()) {
    out += "# HELP ";
    out += family.name;
    out += ' ';
    AppendEscaped(out, family.help, /*escape_quotes=*/false);
    out += '\n';
  }
  out += "# TYPE ";
  out += family.name;
  out += ' ';
  out += TypeName(family.type);
  out += '\n';
}

void TextFormat::AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity,
                              FixedParts& parts) {
  AppendTextSeries(family, series, identity, &LabelText, parts);
}

void AppendTextSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity,
                      std::string (*label_text)(double), FixedParts& parts) {
  const auto add_line = [&](std::string_view suffix, std::string_view extra_name = {}, std::string_view extra_value = {}) {
    std::string& out = parts.bytes;
    const size_t begin = out.size();
    out += family.name;
    out += suffix;
    char separator = '{';
    const auto add_label = [&](std::string_view label, std::string_view value) {
      out += separator;
      out += label;
      out += "=\"";
      AppendEscaped(out, value, /*escape_quotes=*/true);
      out += '"';
      separator = ',';
    };
    ForEachLabel(series.labels, identity, add_label);
    if (!extra_name.empty()) add_label(extra_name, extra_value);
    if (separator == ',') out += '}';
    out += ' ';
    parts.EndPart(begin);
  };
  switch (family.type) {
    case MetricType::kHistogram:
      for (double bound : family.bounds) add_line("_bucket", "le", label_text(bound));
      add_line("_bucket", "le", "+Inf");
      break;
    case MetricType::kSummary:
      for (double quantile : family.bounds) add_line("", "quantile", label_text(quantile));
      break;
    default:
      add_line("");
      return;
  }
  add_line("_sum");
  add_line("_count");
}

void TextFormat::WriteHistogram(PartWriter& writer, const FamilyLayout& family, const double* values) {
  ClassicBuffer buffer;
  const double* const counts = family.BucketCounts(values, buffer);
  double count = 0;
  for (size_t i = 0; i <= family.bounds.size(); ++i) WriteLine(writer, count += counts[i]);
  WriteLine(writer, values[0]);
  WriteLine(writer, count);
}

// `values`: the sum, the count, then the value of each quantile.
void TextFormat::WriteSummary(PartWriter& writer, const double* values, size_t quantiles) {
  for (size_t i = 0; i < quantiles; ++i)
    if (IsAbsent(values[2 + i]))
      writer.SkipParts(1);
    else
      WriteLine(writer, values[2 + i]);
  WriteLine(writer, values[0]);
  WriteLine(writer, values[1]);
}

}  // namespace persia::agent
