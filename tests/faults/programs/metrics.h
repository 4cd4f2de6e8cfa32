// The scenario's metrics: each method uses the library as a program does, and enters its counts in the ledger.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "own.h"
#include "persia/metrics/c.h"
#include "persia/metrics/metrics.h"

namespace faults {

class Metrics {
 public:
  // Makes the texts, which are the program's own; uses nothing of the library.
  explicit Metrics(Ledger& ledger);

  // Make handles, and count.
  void Instruments();
  void Families();
  void Streams();
  void Events();
  void CApi();
  // Series with long descriptors: the segment's parts grow.
  void Grow();
  // Count by the handles that exist, and by a new one: in another thread, and in a forked child.
  void InThread(const char* number);
  void InChild();
  // Counts by the handles that exist until `stop`, in any thread. Gives how often; EnterLoad enters that in the ledger.
  int CountUntil(const std::atomic<bool>& stop);
  void EnterLoad(int times);
  // Counts after main.
  void AtEnd();
  // Prints the counts that AtEnd will make.
  void ExpectEnd() { ledger_.Add("faults/after_main", 1); }

 private:
  static constexpr size_t kFillers = 10;

  void Step(double seconds);

  Ledger& ledger_;
  const persia::metrics::Description plain_{.help = "A metric of the fault tests."};
  const persia::metrics::Description labelled_{.help = "One with a label.", .unit = "bytes", .labels = {{"phase", "warm"}}};
  const std::string long_help_ = std::string(2048, 'h');
  std::array<persia::metrics::Description, kFillers> filler_about_;
  std::array<std::string, kFillers> filler_names_;
  std::array<std::string, kFillers> filler_keys_;
  std::vector<double> bounds_ = {0.5, 1, 2, 4};
  persia::metrics::events::Event event_{.name = "saved", .type = "faults", .metadata = {{"path", std::string(64, 'p')}}};
  std::shared_ptr<persia::metrics::events::EventHandler> null_events_;
  std::shared_ptr<persia::metrics::MetricHandler> null_metrics_;

  persia::metrics::Counter steps_;
  persia::metrics::Gauge pending_;
  persia::metrics::Histogram sizes_;
  persia::metrics::TimeCost cost_;
  persia::metrics::Stream stream_;
  persia::metrics::Counter after_main_;
};

}  // namespace faults
