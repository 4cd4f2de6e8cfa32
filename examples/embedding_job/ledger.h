// What this process counted, by its own arithmetic: a second book beside the metrics library, to check the exported numbers
// against.
//
// An instrument of the ledger does two things at once: it calls the library's handle as any program would, and adds to a plain
// number of its own. At the end each process writes its numbers, and whoever started the job merges them into one report.
//
//   Ledger ledger("embedding_server", 0);
//   TalliedCounter misses = ledger.Add(catalog::kIndexMissCount, catalog::IndexMissCount());
//   misses.Increment(missing);
//   WriteReportPart(path, ledger.Part({}));
//
// Thread safety: instruments may be used from any thread, and copied; the numbers of one are changed together with the
// handle's, under a lock, so that the last value of both is the same one. The ledger must outlive its instruments. Making
// instruments, and Part: one thread.
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

// One line of the ledger.
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

  // An instrument of the Persia tables; `label_value` is that of the entry's label, if it has one.
  TalliedCounter Add(const persia::metrics::catalog::Entry& entry, persia::metrics::Counter handle,
                     std::string_view label_value = {});
  TalliedGauge Add(const persia::metrics::catalog::Entry& entry, persia::metrics::Gauge handle,
                   std::string_view label_value = {});
  TalliedTimeCost Add(const persia::metrics::catalog::Entry& entry, persia::metrics::TimeCost handle);

  // New instruments of another group.
  TalliedCounter NewCounter(std::string_view group, std::string_view name, const persia::metrics::Description& about);
  TalliedGauge NewGauge(std::string_view group, std::string_view name, const persia::metrics::Description& about);
  // With bounds for durations in seconds.
  TalliedHistogram NewHistogram(std::string_view group, std::string_view name, const persia::metrics::Description& about);

  // All numbers, for the report. `job_fields`: see ReportPart. REQUIRES: nothing counts any more.
  [[nodiscard]] ReportPart Part(std::string job_fields) const;

 private:
  Tally& NewTally(std::string_view group, std::string_view name, std::string_view type, std::string_view label_name = {},
                  std::string_view label_value = {});
  [[nodiscard]] std::string JsonOf(const Tally& tally) const;

  const std::string role_;
  const int replica_;
  std::deque<Tally> tallies_;  // their addresses stay
};

}  // namespace embedding_job
