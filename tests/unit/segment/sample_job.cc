#include "segment/sample_job.h"

#include <cmath>
#include <cstdint>
#include <thread>

#include "persia/metrics/metrics.h"

namespace persia::agent::testing {

namespace metrics = persia::metrics;

void RecordSample() {
  // A handle made before Init, and labels of the process.
  metrics::Counter batches("my_app", "batches", {.help = "Batches trained.", .unit = "batches"});
  batches.Increment(3);
  metrics::Init({.job_name = "golden", .role = "trainer", .replica = 2, .labels = {{"zone", "eu"}}});

  metrics::Counter energy("my_app", "energy.joules", {.help = "Energy, in joules.", .unit = "joules"});
  const double bounds[] = {0.5, 1, 2.5};
  metrics::Histogram sizes("my_app", "sizes", bounds, {.help = "Sizes.", .labels = {{"side", "left"}}});
  std::thread other([&] {
    batches.Increment(40);
    energy.Increment(0.25);
    sizes.Observe(0.75);
  });
  other.join();
  energy.Increment(0.5);
  energy.Increment(2);
  energy.Increment(-1);            // dropped
  energy.Increment(std::nan(""));  // dropped
  for (const double size : {0.5, 2.5, 100.0}) {
    sizes.Observe(size);
  }
  metrics::Family<metrics::Counter> nans = metrics::catalog::NanCount();
  nans.With({{"feat", "user_id"}}).Increment(5);
  nans.With({{"feat", "caf\xc3\xa9 \"x\"\\\n"}});
  metrics::catalog::Staleness().Set(12.5);
  metrics::catalog::IndexMissRatio();  // never set
  metrics::Gauge("my_app", "world_size", metrics::GaugeMerge::kSum).Add(4);
  metrics::catalog::LookupRpcTimeCost().Observe(0.0625);
  metrics::Stream latency("my_app", "latency.ms", {.help = "Time of a call.", .unit = "ms"});
  latency.Add(3);
  latency.Add(12.5);
  metrics::events::Record("my_app", "checkpoint", {{"bytes", int64_t{1024}}, {"final", true}});
  metrics::events::Record("my_app", "checkpoint");
}

std::map<std::string, std::string> ExpectedOfSample() {
  return {
      {R"(index_miss_ratio{zone="eu"}@rep_2/trainer)", "absent"},
      {R"(lookup_rpc_time_cost_sec{zone="eu"}@rep_2/trainer)", "0.0625"},
      {R"(lookup_rpc_time_cost{zone="eu"}@rep_2/trainer)", "0.0625: 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0"},
      {R"(my_app_batches{zone="eu"}@rep_2/trainer)", "43"},
      {R"(my_app_energy_joules{zone="eu"}@rep_2/trainer)", "2.75"},
      {R"(my_app_latency_ms{zone="eu"}@rep_2/trainer)", "12.5"},
      {R"(my_app_sizes{side="left",zone="eu"}@rep_2/trainer)", "103.75: 1 1 1 1"},
      {R"(my_app_world_size{zone="eu"}@rep_2/trainer)", "4"},
      {"nan_count{feat=\"caf\xc3\xa9 \"x\"\\\n\",zone=\"eu\"}@rep_2/trainer", "0"},
      {R"(nan_count{feat="user_id",zone="eu"}@rep_2/trainer)", "5"},
      {R"(persia_events_total{event="checkpoint",type="my_app",zone="eu"}@rep_2/trainer)", "2"},
      {R"(persia_metrics_dropped_total{reason="bad_value"}@rep_2/trainer)", "2"},
      {R"(persia_metrics_lost_total{metric="my_app/energy.joules",reason="bad_value",zone="eu"}@rep_2/trainer)", "2"},
      {R"(staleness{zone="eu"}@rep_2/trainer)", "12.5"},
  };
}

}  // namespace persia::agent::testing
