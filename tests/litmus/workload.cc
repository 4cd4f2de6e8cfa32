#include "workload.h"

#include <array>
#include <string_view>
#include <utility>

#include "persia/metrics/events.h"
#include "persia/metrics/init.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/remove.h"

namespace persia::litmus {
namespace {

std::string SeriesOf(const std::string& name, const std::string& of) { return of.empty() ? name : name + "{" + of + "}"; }

constexpr std::array<double, 2> kBounds = {1, 10};

}  // namespace

metrics::Description Workload::About(const std::string& of, size_t help) const {
  metrics::Description about;
  about.help = std::string(help, 'h');
  if (!of.empty()) about.labels = {{"of", of}};
  return about;
}

void Workload::Init(int generation) const {
  const uint32_t begin = Notes::Begin();
  metrics::Options options;
  options.metrics_dir = directory_;
  options.role = "trainer";
  options.labels = {{"generation", std::to_string(generation)}};
  metrics::Init(options);
  notes_.Identified(generation, begin);
}

Workload::Counter Workload::NewCounter(const std::string& name, const std::string& of, size_t help) const {
  const uint32_t begin = Notes::Begin();
  Counter counter{SeriesOf(name, of), {"my_app", name, About(of, help)}};
  notes_.Made(counter.series, begin);
  return counter;
}

Workload::Gauge Workload::NewGauge(const std::string& name, const std::string& of) const {
  const uint32_t begin = Notes::Begin();
  Gauge gauge{SeriesOf(name, of), {"my_app", name, About(of, 0)}};
  notes_.Made(gauge.series, begin);
  return gauge;
}

Workload::Histogram Workload::NewHistogram(const std::string& name, const std::string& of) const {
  const uint32_t begin = Notes::Begin();
  Histogram histogram{SeriesOf(name, of), {"my_app", name, kBounds, About(of, 0)}};
  notes_.Made(histogram.series, begin);
  return histogram;
}

Workload::Stream Workload::NewStream(const std::string& name, const std::string& of) const {
  const uint32_t begin = Notes::Begin();
  Stream stream{SeriesOf(name, of), {"my_app", name, About(of, 0)}};
  notes_.Made(stream.series, begin);
  return stream;
}

void Workload::Export(const std::string& name, const std::string& of) const {
  const uint32_t begin = Notes::Begin();
  const Counter counter = NewCounter(name, of);
  notes_.Set(counter.series + " removed", 0, begin);
}

void Workload::Remove(const std::string& name, const std::string& of) const {
  const uint32_t begin = Notes::Begin();
  metrics::RemoveSeries("my_app", name, {{"of", of}});
  notes_.Set(SeriesOf(name, of) + " removed", 1, begin);
}

void Workload::Increment(Counter of, double by) const {
  const uint32_t begin = Notes::Begin();
  of.counter.Increment(by);
  notes_.Counted(of.series, by, begin);
}

void Workload::Set(Gauge of, double value) const {
  const uint32_t begin = Notes::Begin();
  of.gauge.Set(value);
  notes_.Set(of.series, value, begin);
}

void Workload::Add(Gauge of, double by) const {
  const uint32_t begin = Notes::Begin();
  of.gauge.Add(by);
  notes_.Counted(of.series, by, begin);
}

void Workload::Observe(Histogram of, double value) const {
  const uint32_t begin = Notes::Begin();
  of.histogram.Observe(value);
  notes_.Counted(of.series, 1, begin);
  notes_.Counted(of.series + " sum", value, begin);
}

void Workload::Add(Stream of, double value) const {
  const uint32_t begin = Notes::Begin();
  of.stream.Add(value);
  notes_.Set(of.series, value, begin);
  notes_.Counted(of.series + " count", 1, begin);
  notes_.Counted(of.series + " sum", value, begin);
}

Workload::Phase Workload::NewPhase(const std::string& name) const {
  const uint32_t begin = Notes::Begin();
  Phase phase{name, metrics::Phase(name)};
  for (const std::string kind : {"seconds_total{", "duration_seconds{"}) notes_.Made(kind + name + "}", begin);
  notes_.Made("seconds_total{other}", begin);
  return phase;
}

void Workload::Enter(const Phase& of, const std::string& before) const {
  const uint32_t begin = Notes::Begin();
  of.phase.Enter();
  if (!before.empty()) notes_.Counted("seconds_total{" + before + "}", 1, begin);
}

void Workload::Leave(const Phase& of, double ran) const {
  const uint32_t begin = Notes::Begin();
  of.phase.Leave();
  notes_.Counted("seconds_total{" + of.name + "}", 1, begin);
  notes_.Counted("duration_seconds{" + of.name + "}", 1, begin);
  notes_.Counted("duration_seconds{" + of.name + "} sum", ran, begin);
}

void Workload::Record(uint64_t number) const {
  const uint32_t begin = Notes::Begin();
  const std::string text(16 + number % 24, static_cast<char>('a' + number % 26));
  metrics::events::Record("training", "step",
                          {{"number", static_cast<int64_t>(number)}, {"text", std::string_view(text)}, {"half", number / 2.0}});
  notes_.Made("step", begin);
  notes_.Counted("step", 1, begin);
  notes_.Recorded(number, begin);
}

void Workload::Exit() const {
  const uint32_t begin = Notes::Begin();
  metrics::internal::MarkExit(kExitCode);
  notes_.Exited(begin);
}

}  // namespace persia::litmus
