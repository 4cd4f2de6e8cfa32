#include "metrics.h"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

#include "scope.h"

namespace faults {

using persia::metrics::Counter;
using persia::metrics::Family;
using persia::metrics::Gauge;
using persia::metrics::GaugeMerge;
using persia::metrics::Histogram;
using persia::metrics::MetricStream;
using persia::metrics::ScopedTimer;
using persia::metrics::Stream;
using persia::metrics::TimeCost;

Metrics::Metrics(Ledger& ledger)
    : ledger_(ledger),
      null_events_(std::make_shared<persia::metrics::events::NullEventHandler>()),
      null_metrics_(std::make_shared<persia::metrics::NullMetricHandler>()) {
  for (size_t i = 0; i < kFillers; ++i) {
    filler_about_[i].help = long_help_;
    filler_names_[i] = "filler_" + std::to_string(i);
    filler_keys_[i] = "faults/" + filler_names_[i];
  }
}

void Metrics::Step(double seconds) {
  Library([&] {
    steps_.Increment();
    sizes_.Observe(3);
    cost_.Observe(seconds);
    stream_.Add(seconds);
  });
  ledger_.Add("faults/steps_total", 1);
  ledger_.Add("faults/sizes:count", 1);
  ledger_.Add("faults/sizes:sum", 3);
  ledger_.Add("faults/cost:count", 1);
  ledger_.Add("faults/cost:sum", seconds);
  ledger_.Set("faults/cost_sec", seconds);
  ledger_.Add("faults/latency:count", 1);
  ledger_.Add("faults/latency:sum", seconds);
  ledger_.Set("faults/latency:last", seconds);
}

void Metrics::Instruments() {
  Library([&] {
    steps_ = Counter("faults", "steps_total", plain_);
    steps_.Increment(2.5);
  });
  ledger_.Add("faults/steps_total", 2.5);
  Library([&] {
    pending_ = Gauge("faults", "pending", GaugeMerge::kSum, plain_);
    pending_.Set(4);
    pending_.Add(3);
  });
  ledger_.Set("faults/pending", 7);
  Library([&] { sizes_ = Histogram("faults", "sizes", bounds_, plain_); });
  Library([&] { cost_ = TimeCost("faults", "cost", plain_); });
  Library([&] { stream_ = Stream("faults", "latency", plain_); });
  Library([&] { after_main_ = Counter("faults", "after_main", plain_); });
  Step(0.25);
  Step(0.5);
}

void Metrics::Families() {
  Library([&] {
    Family<Counter> nans("faults", "nans", labelled_);
    nans.With({{"feat", "user"}, {"dim", "8"}}).Increment(3);
    nans.With({{"feat", "item"}, {"dim", "8"}}).Increment();
  });
  ledger_.Add("faults/nans{dim=8,feat=user,phase=warm}", 3);
  ledger_.Add("faults/nans{dim=8,feat=item,phase=warm}", 1);
  Library([&] {
    Family<Gauge> rate("faults", "rate", GaugeMerge::kMax, plain_);
    rate.With({{"feat", "user"}}).Set(0.5);
  });
  ledger_.Set("faults/rate{feat=user}", 0.5);
  Library([&] {
    Family<Histogram> rows("faults", "rows", bounds_, plain_);
    rows.With({{"feat", "user"}}).Observe(1.5);
  });
  ledger_.Add("faults/rows{feat=user}:count", 1);
  ledger_.Add("faults/rows{feat=user}:sum", 1.5);
}

void Metrics::Streams() {
  Library([&] { persia::metrics::Configure(null_metrics_, "a quiet group of metric streams"); });
  Library([&] {
    MetricStream stream = persia::metrics::GetStream("a group of metric streams");
    stream.AddValue("flakiness", 2);
  });
  ledger_.Add("a group of metric streams/flakiness:count", 1);
  ledger_.Add("a group of metric streams/flakiness:sum", 2);
  ledger_.Set("a group of metric streams/flakiness:last", 2);
  Library([&] { persia::metrics::PutMetric("put", 8, "faults"); });
  ledger_.Add("faults/put:count", 1);
  ledger_.Add("faults/put:sum", 8);
  ledger_.Set("faults/put:last", 8);
  Library([&] { persia::metrics::PutMetric("put", 8, "a quiet group of metric streams"); });
  Library([&] {
    const persia::metrics::benchmarkai::EmitResult result =
        persia::metrics::benchmarkai::Emit({{"a long name of an emitted metric", 16}});
    static_cast<void>(result);
  });
  ledger_.Add("benchmarkai/a long name of an emitted metric:count", 1);
  ledger_.Add("benchmarkai/a long name of an emitted metric:sum", 16);
  ledger_.Set("benchmarkai/a long name of an emitted metric:last", 16);
}

void Metrics::Events() {
  Library([&] { persia::metrics::events::Configure(null_events_, "a quiet type of events"); });
  Library([&] {
    persia::metrics::events::Record("faults", "saved", {{"bytes", int64_t{1024}}, {"path", std::string_view("/data")}});
  });
  Library([&] { persia::metrics::events::RecordEvent(event_); });
  ledger_.Add("faults/saved:events", 2);
  Library([&] { persia::metrics::events::Record("a quiet type of events", "saved"); });
  ledger_.Add("a quiet type of events/saved:events", 1);
}

void Metrics::CApi() {
  constexpr persia_metrics_pair_t kLabel = {"kind", "a value that does not fit into a small string"};
  const persia_metrics_description_t about = {"A counter.", nullptr, &kLabel, 1};
  Library([&] {
    persia_metrics_counter_t* counter = persia_metrics_counter("faults", "c_counter", &about);
    persia_metrics_counter_add(counter, 2);
    persia_metrics_counter_add(persia_metrics_counter("faults", "c_counter", &about), 3);
  });
  ledger_.Add("faults/c_counter{kind=a value that does not fit into a small string}", 5);
  Library([&] { persia_metrics_gauge_set(persia_metrics_gauge("faults", "c_gauge", PERSIA_METRICS_GAUGE_LAST, nullptr), 6); });
  ledger_.Set("faults/c_gauge", 6);
  Library(
      [&] { persia_metrics_histogram_observe(persia_metrics_histogram("faults", "c_histogram", nullptr, 0, nullptr), 0.125); });
  ledger_.Add("faults/c_histogram:count", 1);
  ledger_.Add("faults/c_histogram:sum", 0.125);
  Library([&] { persia_metrics_stream_add(persia_metrics_stream("faults", "c_stream", nullptr), 32); });
  ledger_.Add("faults/c_stream:count", 1);
  ledger_.Add("faults/c_stream:sum", 32);
  ledger_.Set("faults/c_stream:last", 32);
  Library([&] { persia_metrics_event("faults", "c_event", &kLabel, 1); });
  ledger_.Add("faults/c_event:events", 1);
  Library([&] {
    const persia_metrics_number_t number = {"c_emitted", 64};
    char error[64];
    persia_metrics_emit(&number, 1, error, sizeof error);
  });
  ledger_.Add("benchmarkai/c_emitted:count", 1);
  ledger_.Add("benchmarkai/c_emitted:sum", 64);
  ledger_.Set("benchmarkai/c_emitted:last", 64);
}

void Metrics::Grow() {
  for (size_t i = 0; i < kFillers; ++i) {
    Library([&] { Counter("faults", filler_names_[i], filler_about_[i]).Increment(); });
    ledger_.Add(filler_keys_[i].c_str(), 1);
  }
}

void Metrics::InThread(const char* number) {
  Step(2);
  Library([&] {
    Family<Counter> threads("faults", "threads", plain_);
    threads.With({{"number", number}}).Increment();
  });
  ledger_.Add(number[0] == '1' ? "faults/threads{number=1}" : "faults/threads{number=2}", 1);
}

int Metrics::CountUntil(const std::atomic<bool>& stop) {
  int times = 0;
  for (; !stop; ++times) {
    Library([&] {
      steps_.Increment();
      sizes_.Observe(3);
      stream_.Add(2);
      pending_.Add(1);
      persia::metrics::events::Record("faults", "saved");
    });
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return times;
}

void Metrics::EnterLoad(int times) {
  ledger_.Add("faults/steps_total", times);
  ledger_.Add("faults/sizes:count", times);
  ledger_.Add("faults/sizes:sum", 3.0 * times);
  ledger_.Add("faults/latency:count", times);
  ledger_.Add("faults/latency:sum", 2.0 * times);
  ledger_.Set("faults/latency:last", 2);
  ledger_.Add("faults/pending", times);
  ledger_.Add("faults/saved:events", times);
}

void Metrics::InChild() {
  Step(4);
  Library([&] { pending_.Set(9); });
  ledger_.Set("faults/pending", 9);
  Library([&] { Counter("faults", "only_in_child", plain_).Increment(11); });
  ledger_.Add("faults/only_in_child", 11);
  Events();
}

void Metrics::AtEnd() {
  Library([&] { after_main_.Increment(); });
}

}  // namespace faults
