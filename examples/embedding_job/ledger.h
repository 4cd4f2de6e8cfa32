// This process's own counts, made without the metrics library, to compare with the exported numbers.
//
// An instrument of the ledger calls the library's handle, as any program would, and also adds to a plain number. At the end
// each process writes its numbers, and the process that started the job merges them into one report.
//
//   Ledger ledger("embedding_server", 0);
//   TalliedCounter misses = ledger.Add(catalog::kIndexMissCount, catalog::IndexMissCount());
//   misses.Increment(missing);
//   WriteReportPart(path, ledger.Part({}));
//
// Thread safety: instruments may be used from any thread, and copied. The plain number and the handle change together under a
// lock, so that both have the same last value. The ledger must outlive its instruments. Add and Part: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "persia/metrics/catalog.h"
#include "persia/metrics/instruments.h"
#include "report.h"

namespace embedding_job {

// One instrument's numbers.
struct Tally {
  std::string group;
  std::string name;
  std::string type;  // counter, gauge, histogram, time_cost
  std::string label_name;
  std::string label_value;

  std::mutex mutex;
  uint64_t count = 0;
  double sum = 0;
  std::optional<double> last;
};

class TalliedCounter {
 public:
  TalliedCounter(persia::metrics::Counter handle, Tally& tally) : handle_(handle), tally_(&tally) {}
  void Increment(uint64_t by = 1);

 private:
  persia::metrics::Counter handle_;
  Tally* tally_;
};

class TalliedGauge {
 public:
  TalliedGauge(persia::metrics::Gauge handle, Tally& tally) : handle_(handle), tally_(&tally) {}
  void Set(double value);

 private:
  persia::metrics::Gauge handle_;
  Tally* tally_;
};

// Instrument: Histogram or TimeCost. May be given to a ScopedTimer.
template <class Instrument>
class TalliedObserver {
 public:
  TalliedObserver(Instrument handle, Tally& tally) : handle_(handle), tally_(&tally) {}
  void Observe(double value) {
    const std::lock_guard lock(tally_->mutex);
    handle_.Observe(value);
    ++tally_->count;
    tally_->sum += value;
    tally_->last = value;
  }

 private:
  Instrument handle_;
  Tally* tally_;
};
using TalliedTimeCost = TalliedObserver<persia::metrics::TimeCost>;
using TalliedHistogram = TalliedObserver<persia::metrics::Histogram>;

class Ledger {
 public:
  Ledger(std::string role, int replica);

  // An instrument of the Persia tables; `label_value` is the value of the entry's label, if it has one.
  TalliedCounter Add(const persia::metrics::catalog::Entry& entry, persia::metrics::Counter handle,
                     std::string_view label_value = {});
  TalliedGauge Add(const persia::metrics::catalog::Entry& entry, persia::metrics::Gauge handle,
                   std::string_view label_value = {});
  TalliedTimeCost Add(const persia::metrics::catalog::Entry& entry, persia::metrics::TimeCost handle);

  // New instruments of another group.
  TalliedCounter NewCounter(std::string_view group, std::string_view name, const persia::metrics::Description& about);
  TalliedGauge NewGauge(std::string_view group, std::string_view name, const persia::metrics::Description& about);
  // Its bounds are for durations in seconds.
  TalliedHistogram NewHistogram(std::string_view group, std::string_view name, const persia::metrics::Description& about);

  // All numbers, for the report. `job_fields`: see ReportPart. REQUIRES: no instrument is in use.
  [[nodiscard]] ReportPart Part(std::string job_fields) const;

 private:
  Tally& NewTally(std::string_view group, std::string_view name, std::string_view type, std::string_view label_name = {},
                  std::string_view label_value = {});
  [[nodiscard]] std::string JsonOf(const Tally& tally) const;

  const std::string role_;
  const int replica_;
  std::deque<Tally> tallies_;  // a deque, so that addresses stay valid
};

}  // namespace embedding_job
