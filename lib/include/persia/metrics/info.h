// Instruments for texts: Info for facts that do not change often, Enum for a state out of a few. As in OpenMetrics and
// prometheus_client; Prometheus stores both as gauges.
//
// Thread safety: any method, from any thread. The methods look series up, and may take a lock: not for inner loops.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/family.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/span.h"

namespace persia::metrics {
inline namespace abi_1 {

// Texts about the process, for example its versions:
//
//   Info build("my_app", "build");
//   build.Set({{"version", "1.4"}, {"revision", "8f0c1"}});
//
// Exported as the gauge `<group>_<name>_info` of value 1, with the texts as labels. Copies share the series.
class PERSIA_METRICS_API Info {
 public:
  // The info (`group`, `name`) with the labels of `about`. `_info` is added to the name unless it ends so.
  Info(std::string_view group, std::string_view name, const Description& about = {}) noexcept;

  // Replaces the texts. The former ones are not exported any more. If the new ones are refused (instruments.h), nothing
  // changes.
  void Set(LabelView texts) noexcept;
  // The same for texts in braces.
  void Set(std::initializer_list<Label> texts) noexcept { Set(LabelView(texts.begin(), texts.size())); }

  // Takes the texts away: the info is not exported until it is set again.
  void Unset() noexcept;
  // Removes the texts (remove.h), until the next Set. False: there are none, or memory ran out.
  bool Remove() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // null if memory ran out
};

// A state out of a few:
//
//   Enum phase("my_app", "phase", {"warm", "train", "done"});
//   phase.Set("train");
//
// Exported as a gauge for each state, 1 for the current one and 0 for the others, with a label that has the metric's exported
// name: `my_app_phase{my_app_phase="train"} 1`. The first state is the initial one. Copies share the series.
class PERSIA_METRICS_API Enum {
 public:
  // The enum (`group`, `name`) with the labels of `about`. `states` are its states, at least one, each once.
  Enum(std::string_view group, std::string_view name, Span<const std::string_view> states,
       const Description& about = {}) noexcept;
  // The same for states in braces.
  Enum(std::string_view group, std::string_view name, std::initializer_list<std::string_view> states,
       const Description& about = {}) noexcept
      : Enum(group, name, Span<const std::string_view>(states.begin(), states.size()), about) {}

  // Changes the state. An unknown `state` is ignored and counted as dropped. During a change, a reader may see two states at 1.
  void Set(std::string_view state) noexcept;

  // Takes the state away: the enum is not exported until it is set again.
  void Unset() noexcept;

  // The current state. Empty: there is none, since it was taken away, or the metric was refused.
  [[nodiscard]] std::string Value() const noexcept;

  // Removes the series of all states (remove.h), until an Enum with this name and these labels is made again. False: there are
  // none, or memory ran out.
  bool Remove() noexcept;

 private:
  using States = std::vector<std::pair<std::string, Gauge>>;
  std::shared_ptr<const States> states_;  // null if memory ran out
};

}  // namespace abi_1
}  // namespace persia::metrics
