#include "persia/metrics/progress.h"

#include <cstdint>
#include <string_view>

#include "made_once.h"
#include "persia/metrics/instruments.h"
#include "phase_track.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

constexpr std::string_view kProgressGroup = "persia_progress";

constinit MadeOnce<Counter> steps_counter;
constinit MadeOnce<Counter> samples_counter;
constinit MadeOnce<Counter> tokens_counter;
constinit MadeOnce<Gauge> planned_gauge;

Counter NewCounter(std::string_view name, const char* help) { return {kProgressGroup, name, {.help = help}}; }

}  // namespace

void CountSteps(uint64_t count) noexcept {
  if (auto steps = steps_counter.Get([] {
        return NewCounter("steps_total", "Training steps that are done, with those that were done again after a restart.");
      })) {
    steps->Increment(count);
    AdvanceStep(count);
  }
}

void CountSamples(uint64_t count) noexcept {
  if (auto samples = samples_counter.Get([] { return NewCounter("samples_total", "Samples that were trained on."); }))
    samples->Increment(count);
}

void CountTokens(uint64_t count) noexcept {
  if (auto tokens = tokens_counter.Get([] { return NewCounter("tokens_total", "Tokens that were trained on."); }))
    tokens->Increment(count);
}

void SetTotalSteps(uint64_t steps) noexcept {
  if (auto planned = planned_gauge.Get(
          [] { return Gauge(kProgressGroup, "planned_steps", {.help = "The step with which the training ends."}); }))
    planned->Set(static_cast<double>(steps));
}

}  // namespace abi_1
}  // namespace persia::metrics
