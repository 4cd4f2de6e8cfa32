// The size and the cost of a series in its native and its classic form: written for a scrape, and for remote write.
//
//   bench_native_histograms [--benchmark_...]
//
// 1,000 series of a stream, each with 10,000 values over four orders of magnitude, which populate 60 to 70 buckets. The classic
// form has the default bounds of a stream's histogram. Counters, of one series: its time in seconds (`ns` in
// native_histograms.py), its bytes, of remote write before compression, its `compressed` bytes and its `samples`.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/scrape_renderer.h"
#include "merge/stream_totals.h"
#include "model/bounds.h"
#include "persia/metrics/internal/bucket_search.h"
#include "remote/series_plan.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

constexpr size_t kSeries = 1000;
constexpr int kValues = 10'000;

Snapshot Streams(bool native) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"bench", {{"instance", "rep_0"}, {"ip_addr", "10.0.0.1"}, {"role", "trainer"}}});
  FamilyLayout family{.name = "my_app_latency_seconds",
                      .type = MetricType::kHistogram,
                      .help = "Of a look-up.",
                      .unit = "",
                      .bounds = DefaultStreamBounds(),
                      .series = {}};
  const std::vector<uint32_t> cuts = StreamCuts(family.bounds, Scale());
  if (native) {
    family.native = NativeBuckets{.schema = kStreamSchema,
                                  .first = kFirstStreamBound + 1,
                                  .buckets = kLastStreamBound - kFirstStreamBound + 1,
                                  .max_buckets = 0,
                                  .classic = false,
                                  .cuts = cuts};
    for (uint32_t& cut : family.native->cuts) ++cut;
  }
  Snapshot snapshot;
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> values(-3, 1.5);
  for (size_t i = 0; i < kSeries; ++i) {
    family.series.push_back(
        {.identity = 0, .first_value = snapshot.values.size(), .labels = Labels{{"feature", "feature_" + std::to_string(i)}}});
    StreamTotals totals;
    double sum = 0;
    for (int n = 0; n < kValues; ++n) {
      const double value = values(random);
      ++totals.buckets[metrics::internal::StreamBucketOf(value)];
      sum += value;
    }
    snapshot.values.push_back(sum);
    const size_t begin = snapshot.values.size();
    snapshot.values.resize(begin + family.ValuesPerSeries() - 1);
    native ? CountNative(totals, &snapshot.values[begin]) : CountBetween(totals, cuts, &snapshot.values[begin]);
  }
  layout->value_count = snapshot.values.size();
  layout->families.push_back(std::move(family));
  snapshot.layout = std::move(layout);
  return snapshot;
}

void Count(benchmark::State& state, size_t bytes) {
  state.counters["bytes"] = static_cast<double>(bytes) / kSeries;
  state.counters["seconds"] = benchmark::Counter(static_cast<double>(kSeries) * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

template <class Renderer, bool native>
void Scrape(benchmark::State& state) {
  const Snapshot snapshot = Streams(native);
  Renderer renderer;
  std::string body;
  renderer.Render(snapshot, body);
  for (auto _ : state) renderer.Render(snapshot, body);
  Count(state, body.size());
}

template <bool native>
void RemoteWrite(benchmark::State& state) {
  constexpr int64_t kTime = 1'700'000'000'000;
  const Snapshot snapshot = Streams(native);
  const SeriesPlan plan(*snapshot.layout, {}, native);
  std::vector<uint64_t> bits;
  WriteRequest request;
  for (auto _ : state) {
    request.Clear();
    plan.Values(snapshot.values, bits);
    for (size_t i = 0; i < bits.size(); ++i) {
      const std::string_view labels = LabelsOfSeries(plan.series().labels(i));
      if (const SeriesPlan::Native* of = plan.NativeOf(i)) {
        const double* const values = snapshot.values.data() + of->first_value;
        request.AddHistogram(labels, *of->buckets, *values, values + 1, kTime);
      } else {
        request.Add(labels, bits[i], kTime);
      }
    }
  }
  Count(state, request.bytes().size());
  std::string compressed;
  SnappyCompress(request.bytes(), compressed);
  state.counters["compressed"] = static_cast<double>(compressed.size()) / kSeries;
  state.counters["samples"] = static_cast<double>(request.samples()) / kSeries;
}

BENCHMARK(Scrape<TextRenderer, false>)->Name("text/classic");
BENCHMARK(Scrape<TextRenderer, true>)->Name("text/of native");
BENCHMARK(Scrape<ProtobufRenderer, false>)->Name("protobuf/classic");
BENCHMARK(Scrape<ProtobufRenderer, true>)->Name("protobuf/native");
BENCHMARK(RemoteWrite<false>)->Name("remote write/classic");
BENCHMARK(RemoteWrite<true>)->Name("remote write/native");

}  // namespace
}  // namespace persia::agent
