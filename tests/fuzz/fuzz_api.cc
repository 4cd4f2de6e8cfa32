// Any bytes as the query of /api/v1/query_range and /api/v1/series: a response in JSON, of bounded size, with status 200, 400
// or 404.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "web/api.h"
#include "web/history_fixture.h"

namespace {

using namespace persia::agent;  // NOLINT(google-build-using-namespace): as the fixture is in it

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// A family of each type, with series that appear, disappear, fall, and are NaN.
std::vector<History::Entry> MakeEntries() {
  std::vector<History::Entry> entries;
  for (int i = 0; i < 12; ++i) {
    const double value = i == 5 ? std::numeric_limits<double>::quiet_NaN() : i == 8 ? -3.0 : i * 1.5;
    std::vector<TestSeries> counters = {{{{"feat", "a"}}, {i < 7 ? value : i * 0.5}}};
    if (i % 4 != 3) {
      counters.push_back({{{"feat", "b\xff"}}, {value}});
    }
    const double count = i < 6 ? i : i - 6;
    entries.push_back({i * 1000, MakeSnapshot({{"c", MetricType::kCounter, {}, counters},
                                               {"g", MetricType::kGauge, {}, {{{}, {i == 2 ? kAbsentValue : value}}}},
                                               {"h", MetricType::kHistogram, {0, 1}, {{{}, {value, count, 2 * count, 0}}}},
                                               {"s", MetricType::kSummary, {0.5}, {{{}, {value, count, value}}}}})});
  }
  return entries;
}

void Check(const JsonAnswer& answer) {
  Require(answer.status == 200 || answer.status == 400 || answer.status == 404);
  const auto json = nlohmann::json::parse(answer.body);
  Require(json.contains("error") == (answer.status != 200));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& entries = *new std::vector<History::Entry>(MakeEntries());
  static const auto& newest = *new auto(MakeSnapshot({{"young", MetricType::kGauge, {}, {{{}, {1}}}}}));
  const std::string_view query(reinterpret_cast<const char*>(data), size);
  Check(AnswerRange(query, entries, newest.get()));
  Check(AnswerRange(query, {}, newest.get()));
  Check(AnswerSeries(query, entries.back().snapshot.get()));
  return 0;
}
