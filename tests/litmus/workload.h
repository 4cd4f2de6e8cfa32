// The library's calls, which note what they count.
//
// Its source is compiled like the library's, so that the calls that are inlined into it are recorded. Thread safety: one
// thread runs at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "notes.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/phase.h"
#include "persia/metrics/stream.h"

namespace persia::litmus {

class Workload {
 public:
  struct Counter {
    std::string series;
    metrics::Counter counter;
  };
  struct Gauge {
    std::string series;
    metrics::Gauge gauge;
  };
  struct Histogram {
    std::string series;
    metrics::Histogram histogram;
  };
  struct Stream {
    std::string series;
    metrics::Stream stream;
  };

  struct Phase {
    std::string name;
    metrics::Phase phase;
  };

  Workload(Notes& notes, std::string directory) : notes_(notes), directory_(std::move(directory)) {}

  // `generation` is the value of a label of the process.
  void Init(int generation = 0) const;
  // Series `name` of group my_app, with this label `of`, unless it is empty. `help` makes records long.
  [[nodiscard]] Counter NewCounter(const std::string& name, const std::string& of = {}, size_t help = 0) const;
  [[nodiscard]] Gauge NewGauge(const std::string& name, const std::string& of = {}) const;
  [[nodiscard]] Histogram NewHistogram(const std::string& name, const std::string& of = {}) const;
  [[nodiscard]] Stream NewStream(const std::string& name, const std::string& of = {}) const;
  // Counter `name`, which counts nothing here, is exported: as a new series, or again after Remove.
  void Export(const std::string& name, const std::string& of) const;
  void Remove(const std::string& name, const std::string& of) const;
  // Not `const` in meaning: they count.
  void Increment(Counter of, double by) const;
  void Set(Gauge of, double value) const;
  void Add(Gauge of, double by) const;  // noted as a count
  void Observe(Histogram of, double value) const;
  void Add(Stream of, double value) const;  // above 0; a stream of one thread
  // A second passes between two marks. The phase of name `before` stops; empty: none.
  [[nodiscard]] Phase NewPhase(const std::string& name) const;
  void Enter(const Phase& of, const std::string& before) const;
  void Leave(const Phase& of, double ran) const;  // ran: since it was entered
  // An event whose fields all follow from `number`.
  void Record(uint64_t number) const;
  void Exit() const;

  [[nodiscard]] Notes& notes() const { return notes_; }

 private:
  [[nodiscard]] metrics::Description About(const std::string& of, size_t help) const;

  Notes& notes_;
  const std::string directory_;
};

inline constexpr int kExitCode = 3;

}  // namespace persia::litmus
