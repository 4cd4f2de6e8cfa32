#include "app/mapping_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/text.h"

namespace persia::agent {
namespace {

constexpr double kLongestTtlSeconds = 10.0 * 365 * 86400;
constexpr size_t kMostBuckets = 500;  // as an instrument of the library has at most
constexpr size_t kMostQuantiles = 100;

bool ReadNumber(const YamlNode& node, double& number) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted && ParseNumber(std::string_view(node.text), number) &&
         std::isfinite(number);
}

std::string Found(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar ? Quoted(node.text) : std::string(node.KindName());
}

// The text without `$1`, `${1}`, `${group}` and `$$`; whether they are right is known once the match is.
std::string WithoutReferences(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    out += 'x';  // so that a digit behind it is not the first
    if (i + 1 < text.size() && text[i + 1] == '{') {
      i = std::min(text.find('}', i), text.size());
    } else if (i + 1 < text.size() && text[i + 1] == '$') {
      ++i;
    } else {
      while (i + 1 < text.size() && IsDigit(text[i + 1])) {
        ++i;
      }
    }
  }
  return out;
}

}  // namespace

Result<MetricType> ParseStreamType(std::string_view text) {
  for (const MetricType type : {MetricType::kGauge, MetricType::kCounter, MetricType::kHistogram, MetricType::kSummary}) {
    if (TypeName(type) == text) {
      return type;
    }
  }
  return Error{"unknown type " + Quoted(text) + " (gauge, counter, histogram, summary)"};
}

Result<std::vector<MetricType>> ParseMatchedTypes(std::string_view text) {
  static const std::pair<std::string_view, std::vector<MetricType>> kWords[] = {
      {"counter", {MetricType::kCounter}},
      {"gauge", {MetricType::kGauge}},
      {"histogram", {MetricType::kHistogram}},
      {"stream", {MetricType::kUntyped}},
      {"observer", {MetricType::kHistogram, MetricType::kUntyped}},
  };
  for (const auto& [word, types] : kWords) {
    if (word == text) {
      return types;
    }
  }
  return Error{"unknown type of metrics " + Quoted(text) + " (counter, gauge, histogram, stream, observer)"};
}

Result<std::chrono::milliseconds> ParseTtl(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      // In the order in which they are tried: "ms" before "m". Unicode has the micro sign twice, as Go does.
      {"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const Error bad{Quoted(text) + " is not a duration (30s, 5m, 1m20s; 0: for ever)"};
  if (text == "0") {
    return std::chrono::milliseconds(0);
  }
  double seconds = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    double number = 0;
    if (!ParseNumber(rest.substr(0, digits), number)) {
      return bad;
    }
    rest.remove_prefix(digits);
    const auto unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return rest.starts_with(u.first); });
    if (unit == std::end(kUnits)) {
      return bad;
    }
    seconds += number * unit->second;
    rest.remove_prefix(unit->first.size());
  }
  if (text.empty() || !(seconds <= kLongestTtlSeconds)) {
    return bad;
  }
  // What is less than a millisecond is not for ever.
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

double ReadScale(const YamlNode& value, std::vector<BadValue>& bad) {
  double scale = 0;
  if (!ReadNumber(value, scale) || !(scale >= 1e-100 && scale <= 1e100)) {
    bad.push_back({&value, Found(value) + " is not a number to multiply by (0.001: milliseconds to seconds)" +
                               (value.quoted ? "; leave out the quotes" : "")});
    return 1;
  }
  return scale;
}

std::vector<double> ReadBuckets(const YamlNode& list, std::vector<BadValue>& bad) {
  std::vector<double> buckets;
  if (list.kind != YamlNode::Kind::kSequence || list.items.empty() || list.items.size() > kMostBuckets) {
    bad.push_back({&list, "buckets: expected a list of 1 to 500 upper bounds ([0.01, 0.1, 1]), found " + Found(list)});
    return {};
  }
  for (const auto& item : list.items) {
    double bound = 0;
    if (!ReadNumber(*item, bound)) {
      bad.push_back({item.get(), "buckets: " + Found(*item) + " is not a number (the bucket up to +Inf is there by itself)"});
    } else if (!buckets.empty() && bound <= buckets.back()) {
      bad.push_back({item.get(), "buckets: " + Found(*item) + " is not larger than the bound before it"});
    } else {
      buckets.push_back(bound);
    }
  }
  return buckets;
}

std::vector<double> ReadQuantiles(const YamlNode& list, std::vector<BadValue>& bad) {
  std::vector<double> quantiles;
  if (list.kind != YamlNode::Kind::kSequence || list.items.empty() || list.items.size() > kMostQuantiles) {
    bad.push_back({&list, "quantiles: expected a list of 1 to 100 ([0.5, 0.9, 0.99]), found " + Found(list)});
    return {};
  }
  for (const auto& item : list.items) {
    const YamlNode* value = item.get();
    if (item->kind == YamlNode::Kind::kMap) {
      for (const YamlNode::Entry& entry : item->entries) {
        if (entry.key->text == "quantile") {
          value = entry.value.get();
        } else if (entry.key->text != "error") {
          bad.push_back({entry.key.get(), "quantiles: unknown key " + Quoted(entry.key->text) + " (quantile, error)"});
        }
      }
    }
    double quantile = 0;
    if (!ReadNumber(*value, quantile) || !(quantile > 0 && quantile < 1)) {
      bad.push_back({item.get(), "quantiles: " + Found(*value) + " is not a number between 0 and 1"});
    } else {
      quantiles.push_back(quantile);
    }
  }
  std::sort(quantiles.begin(), quantiles.end());
  quantiles.erase(std::unique(quantiles.begin(), quantiles.end()), quantiles.end());
  return quantiles;
}

std::string WhyNoMetricName(std::string_view text) {
  const std::string plain = WithoutReferences(text);
  const bool good = !plain.empty() && !IsDigit(plain[0]) &&
                    std::all_of(plain.begin(), plain.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
  return good
             ? ""
             : "is not a metric's name (letters, digits, '_', ':', not beginning with a digit; $1 for what the match captured)";
}

std::string WhyNoLabelName(std::string_view name) {
  const bool good = !name.empty() && !IsDigit(name[0]) && !name.starts_with("__") &&
                    std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
  return good ? "" : "is not a label's name (letters, digits and '_', beginning neither with a digit nor with __)";
}

}  // namespace persia::agent
