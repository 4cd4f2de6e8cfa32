#include "naming/mapping_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "model/series_labels.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxBuckets = 500;  // the library's limit for a histogram
constexpr size_t kMaxQuantiles = 100;

bool ReadNumber(const YamlNode& node, double& number) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted && ParseNumber(std::string_view(node.text), number) &&
         std::isfinite(number);
}

bool IsInfinity(const YamlNode& node) {
  static constexpr std::string_view kForms[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"};
  return !node.quoted && std::find(std::begin(kForms), std::end(kForms), node.text) != std::end(kForms);
}

std::string Found(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar ? Quoted(node.text) : std::string(node.KindName());
}

// The text with an `x` for each `$1`, `${1}`, `${group}` and `$$`. NameTemplate checks these, once the match is known.
std::string ReplaceReferences(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    out += 'x';
    if (i + 1 < text.size() && text[i + 1] == '{')
      i = std::min(text.find('}', i), text.size());
    else if (i + 1 < text.size() && text[i + 1] == '$')
      ++i;
    else
      while (i + 1 < text.size() && IsDigit(text[i + 1])) ++i;
  }
  return out;
}

}  // namespace

Result<MetricType> ParseStreamType(std::string_view text) {
  static constexpr Choice<MetricType> kTypes[] = {{"gauge", MetricType::kGauge},
                                                  {"counter", MetricType::kCounter},
                                                  {"histogram", MetricType::kHistogram},
                                                  {"summary", MetricType::kSummary}};
  return ParseChoice(text, kTypes);
}

Result<std::vector<MetricType>> ParseMatchedTypes(std::string_view text) {
  static const Choice<std::vector<MetricType>> kTypes[] = {
      {"counter", {MetricType::kCounter}},
      {"gauge", {MetricType::kGauge}},
      {"histogram", {MetricType::kHistogram}},
      {"stream", {MetricType::kUntyped}},
      {"observer", {MetricType::kHistogram, MetricType::kUntyped}},
      {"timer", {MetricType::kHistogram, MetricType::kUntyped}},  // its former name
  };
  return ParseChoice(text, kTypes);
}

double ReadScale(const YamlNode& value, YamlReader& reader) {
  double scale = 0;
  if (!ReadNumber(value, scale) || !(scale >= 1e-100 && scale <= 1e100)) {
    reader.Fail(value, "scale: " + Found(value) + " is not a number to multiply by (0.001: milliseconds to seconds)" +
                           (value.quoted ? "; leave out the quotes" : ""));
    return 1;
  }
  return scale;
}

std::vector<double> ReadBuckets(const YamlNode& list, YamlReader& reader) {
  std::vector<double> buckets;
  if (list.kind != YamlNode::Kind::kSequence || list.items.size() > kMaxBuckets) {
    reader.Fail(list, "buckets: expected a list of at most 500 upper bounds ([0.01, 0.1, 1]), found " + Found(list));
    return {};
  }
  for (const auto& item : list.items) {
    double bound = 0;
    if (item == list.items.back() && IsInfinity(*item)) break;
    if (!ReadNumber(*item, bound))
      reader.Fail(*item, "buckets: " + Found(*item) + " is not a number (the bucket up to +Inf is added automatically)");
    else if (!buckets.empty() && bound <= buckets.back())
      reader.Fail(*item, "buckets: " + Found(*item) + " is not larger than the bound before it");
    else
      buckets.push_back(bound);
  }
  return buckets;
}

double ReadNativeFactor(const YamlNode& value, YamlReader& reader) {
  double factor = 0;
  if (!ReadNumber(value, factor) || factor < 0)
    reader.Fail(value, "native_histogram_bucket_factor: " + Found(value) + " is not a factor (1.1; 0: no native histogram)");
  return factor;
}

uint32_t ReadMaxBuckets(const YamlNode& value, YamlReader& reader) {
  double count = 0;
  if (!ReadNumber(value, count) || !(count >= 0 && count <= 1e9) || count != std::floor(count)) {
    reader.Fail(value, "native_histogram_max_buckets: " + Found(value) + " is not a number of buckets (160; 0: no limit)");
    return 0;
  }
  return static_cast<uint32_t>(count);
}

std::vector<double> ReadQuantiles(const YamlNode& list, YamlReader& reader) {
  std::vector<double> quantiles;
  if (list.kind != YamlNode::Kind::kSequence || list.items.size() > kMaxQuantiles) {
    reader.Fail(list, "quantiles: expected a list of at most 100 ([0.5, 0.9, 0.99]), found " + Found(list));
    return {};
  }
  for (const auto& item : list.items) {
    const YamlNode* value = item.get();
    if (item->kind == YamlNode::Kind::kMap) {
      for (const YamlNode::Entry& entry : item->entries)
        if (entry.key->text == "quantile")
          value = entry.value.get();
        else if (entry.key->text != "error")
          reader.Fail(*entry.key, "quantiles: unknown key " + Quoted(entry.key->text) + " (quantile, error)");
    }
    double quantile = 0;
    if (!ReadNumber(*value, quantile) || !(quantile >= 0 && quantile <= 1))
      reader.Fail(*item, "quantiles: " + Found(*value) + " is not a number between 0 and 1");
    else
      quantiles.push_back(quantile);
  }
  std::sort(quantiles.begin(), quantiles.end());
  quantiles.erase(std::unique(quantiles.begin(), quantiles.end()), quantiles.end());
  return quantiles;
}

Status CheckMetricName(std::string_view text) {
  const bool good = IsPlainName(ReplaceReferences(text));
  return good ? Status(Done{})
              : Bad(text, "is not a metric's name (letters, digits, _ and :, no digit first; $1 is a part of the match)");
}

Status CheckLabelName(std::string_view name) {
  const bool good = IsPlainLabelName(name) && !name.starts_with("__");
  return good ? Status(Done{})
              : Bad(name, "is not a label's name (letters, digits and _, no digit first, not beginning with __)");
}

}  // namespace persia::agent
