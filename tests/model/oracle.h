// The values that an agent may expose: for every process, the counts and gauges that the model knows.
//
//   Oracle oracle(config, world);
//   oracle.BeginAgent();
//   oracle.BeginCollection(now);
//   ... the agent collects, or is killed
//   oracle.EndCollection(&shown, circumstances);
//   oracle.wrong()                                // the first contradiction; empty: none
//
// Thread safety: none.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history.h"
#include "shown.h"
#include "world.h"

namespace persia::agent::model {

inline constexpr std::chrono::seconds kGaugeTtl{300};
// More than an identity has, and less than the two identities of the second instance have.
inline constexpr size_t kMaxSeriesOfInstance = 12;

class Oracle {
 public:
  struct Circumstances {
    bool soon = false;           // failed operations are not tried again
    bool state_was_read = true;  // by this agent
    bool refuses_large = false;
  };

  Oracle(const Config& config, const World& world) : config_(config), world_(world) {}

  void BeginRun();
  void BeginAgent();
  void BeginCollection(std::chrono::milliseconds now);
  // Null: the agent was killed.
  void EndCollection(const AllShown* shown, const Circumstances& how);
  // The wall clock was set by this.
  void ClockWasSet(std::chrono::milliseconds by) { (by.count() > 0 ? forward_ : back_) += std::chrono::abs(by); }
  // The state lost some written records.
  void StateWasDamaged() {
    damaged_ = true;
    damage_was_met_ = false;
  }
  [[nodiscard]] bool damaged() const { return damaged_; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  // Numbers of collections, of all agents, from 1 on.
  using Number = uint32_t;
  struct Span {
    Number first = 0;
    Number last = UINT32_MAX;
  };
  struct Truth {
    // When this collection began.
    size_t position_before = 0;  // in the process's log
    bool alive_before = true;

    size_t owed = 0;      // the agent has read the log at least up to here
    size_t durable = 0;   // its values were certainly on disk up to here
    bool opened = false;  // by the present agent, which reads it from then on, also without its file
    bool maybe_opened = false;
    bool settled = false;  // an agent that had not opened it has seen that its file was gone: its counts are final
    bool stray = false;    // it may have been settled, or lost with the state: when its gauges count is not known
    bool lost = false;     // its values may be lost with the state

    Span ended = {.first = 0};                      // the collection in which its end was seen; first is 0: it was not
    bool end_is_durable = false;                    // on disk
    bool end_may_be_durable = false;                // an agent was killed in a collection after the end
    std::chrono::milliseconds forward{0}, back{0};  // how far the wall clock had been set by then
    // The collection in which this agent saw that its gauges changed; 0: unknown.
    Number changed = 0;
    bool change_is_unknown = false;
    bool seen = false;
    std::optional<double> seen_gauge = {};
  };
  // A way in which a process may count in the gauges of its identity.
  struct Part {
    enum class As { kNothing, kLiving, kEnded } as = As::kNothing;
    double value = 0;
    size_t process = 0;
  };

  // Whether an instance is not exposed, since its processes ended long ago.
  enum class Hidden { kNo, kMaybe, kYes };

  [[nodiscard]] bool CanOpen(const Process& process, const Circumstances& how) const;
  void Load();
  void Learn(size_t number, const Circumstances& how, bool killed);
  void LearnGauge(Truth& truth, const Process& process);
  void JudgeCounts(const AllShown& shown, bool saved);
  // Whether an identity's series is not exposed, since its processes have removed it.
  [[nodiscard]] Hidden RemovedOf(uint32_t identity) const;
  // Whether the time to live of its gauges may be over, and whether it is.
  [[nodiscard]] bool MayBeOver(const Truth& truth) const;
  [[nodiscard]] bool IsOver(const Truth& truth) const;
  [[nodiscard]] Hidden HiddenOf(uint32_t identity) const;
  void JudgeLimits(const AllShown& shown);
  [[nodiscard]] size_t SeriesOf(uint32_t identity) const;
  [[nodiscard]] bool MayBeLeftOut(uint32_t identity) const;
  void JudgeGauges(const Shown& shown, uint32_t identity);
  [[nodiscard]] std::vector<Part> PartsOf(size_t number) const;
  [[nodiscard]] bool Explains(const std::vector<Part>& parts, const Shown& shown) const;
  [[nodiscard]] bool CertainlyBefore(const Part& a, const Part& b) const;
  void Claim(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  const Config config_;
  const World& world_;
  std::vector<Truth> truths_;                                        // by process
  size_t first_ = 0;                                                 // process of this run
  std::vector<std::chrono::milliseconds> times_{{}};                 // of the collections
  std::array<std::array<double, kCounts>, kIdentities> floor_ = {};  // were shown when all was on disk
  std::chrono::milliseconds forward_{0}, back_{0};
  std::chrono::milliseconds forward_at_load_{0}, back_at_load_{0}, loaded_at_{0};
  bool loaded_ = false;
  bool damaged_ = false;         // and not written again since
  bool damage_was_met_ = false;  // by the present agent
  std::string wrong_;
};

}  // namespace persia::agent::model
