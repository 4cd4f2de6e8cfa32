// Any bytes as a file of rules, and behind a NUL as a metric: an error in one line that names the file, or rules whose outcome
// is valid for Prometheus.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/bounds.h"
#include "model/series_labels.h"
#include "naming/mapping_file.h"
#include "naming/naming.h"

namespace {

using persia::agent::Exposed;
using persia::agent::MetricType;

void Require(bool kept) {
  if (!kept) {
    std::abort();
  }
}

bool Ascend(const std::vector<double>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end() &&
         std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

void Check(const Exposed& exposed) {
  Require(persia::agent::IsPlainName(exposed.name));
  Require(exposed.help == persia::agent::SanitizeText(exposed.help));
  Require(std::is_sorted(exposed.labels.begin(), exposed.labels.end()));
  for (size_t i = 0; i < exposed.labels.size(); ++i) {
    const auto& [name, value] = exposed.labels[i];
    Require(!value.empty() && value == persia::agent::SanitizeText(value));
    Require(persia::agent::IsPlainLabelName(name) && (name == "role" || name == persia::agent::SanitizeLabelName(name)));
    Require(i == 0 || exposed.labels[i - 1].first != name);
  }
  Require(std::isfinite(exposed.scale) && exposed.scale > 0);
  Require(Ascend(exposed.bounds) && Ascend(exposed.quantiles));
  Require(exposed.bounds.empty() == (exposed.type != MetricType::kHistogram));
  Require(exposed.quantiles.empty() == (exposed.type != MetricType::kSummary));
  Require(exposed.ttl.value_or(std::chrono::milliseconds(0)).count() >= 0);
  const auto snapped = persia::agent::SnapToStreamBounds(exposed.bounds, persia::agent::Scale(exposed.scale));
  Require(snapped.size() <= exposed.bounds.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view metric = end == bytes.size() ? "workers.trainer.flakiness" : bytes.substr(end + 1);
  const persia::agent::MappingFile file = persia::agent::ParseMapping("f.yaml", std::string(bytes.substr(0, end)));
  Require(file.rules != nullptr || !file.errors.empty());
  for (const auto* lines : {&file.errors, &file.notes}) {
    for (const std::string& line : *lines) {
      Require(line.starts_with("f.yaml:") && line.find('\n') == std::string::npos);
    }
  }
  if (file.rules != nullptr) {
    for (const MetricType type : {MetricType::kUntyped, MetricType::kCounter, MetricType::kHistogram}) {
      const size_t slash = std::min(metric.find('/'), metric.size());
      Check(*file.rules->Expose({metric.substr(0, slash), metric.substr(std::min(slash + 1, metric.size())), type}));
      Check(*file.rules->Expose({"torchelastic", metric, type}));
    }
  }
  return 0;
}
