#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace persia::agent::model {
namespace {

const char* const kCountNames[kCounts] = {"batches", "rows of a", "rows of b", "sizes"};

std::string Text(double value) { return std::to_string(static_cast<int64_t>(value)); }

}  // namespace

void Oracle::BeginRun() {
  first_ = world_.processes.size();
  floor_ = {};
}

void Oracle::BeginAgent() {
  loaded_ = false;
  truths_.resize(world_.processes.size());
  for (Truth& truth : truths_) {
    truth.opened = truth.maybe_opened = false;
    if (!truth.end_is_durable) {
      truth.ended.last = UINT32_MAX;
      truth.seen = truth.change_is_unknown = false;
      truth.changed = 0;
    }
  }
}

void Oracle::BeginCollection(std::chrono::milliseconds now) {
  times_.push_back(now);
  truths_.resize(world_.processes.size());
  for (size_t i = 0; i < truths_.size(); ++i) {
    Truth& truth = truths_[i];
    truth.position_before = world_.processes[i].log.size() - 1;
    truth.alive_before = *world_.processes[i].alive;
  }
}

bool Oracle::CanOpen(const Process& process, const Circumstances& how) const {
  return process.in_directory && !process.broken && !world_.no_descriptors && !world_.no_descriptors_in_open &&
         !(how.refuses_large && process.large);
}

void Oracle::EndCollection(const AllShown* shown, const Circumstances& how) {
  if (shown != nullptr && how.state_was_read && !loaded_) {
    Load();
  }
  for (size_t i = first_; i < truths_.size(); ++i) {
    Learn(i, how, shown == nullptr);
  }
  if (shown == nullptr || !how.state_was_read) return;  // until then its counts are missing, as the log says
  if (!shown->wrong.empty()) Claim(shown->wrong);
  const bool saves = !world_.disk_full && !how.soon;
  JudgeCounts(*shown, saves);
  JudgeLimits(*shown);
  for (uint32_t identity = 0; identity < kIdentities; ++identity) {
    JudgeGauges(shown->of[identity], identity);
  }
  for (size_t i = first_; saves && i < truths_.size(); ++i) {
    Truth& truth = truths_[i];
    if (truth.opened && (config_.state_elsewhere || !truth.alive_before)) truth.durable = truth.owed;
    truth.end_is_durable = truth.end_is_durable || truth.ended.last != UINT32_MAX;
  }
  if (saves && damage_was_met_) damaged_ = false;
}

// The agent has read the state.
void Oracle::Load() {
  loaded_ = true;
  forward_at_load_ = forward_;
  back_at_load_ = back_;
  loaded_at_ = times_.back();
  damage_was_met_ = damaged_;
  if (!damaged_) return;
  floor_ = {};
  for (Truth& truth : truths_) {
    truth.durable = 0;
    if (truth.ended.first == 0) continue;
    truth.lost = truth.stray = true;
    truth.ended.last = UINT32_MAX;
    truth.end_is_durable = false;
  }
}

// The known values of a process after a collection.
void Oracle::Learn(size_t number, const Circumstances& how, bool killed) {
  const auto collection = static_cast<Number>(times_.size() - 1);
  const Process& process = world_.processes[number];
  Truth& truth = truths_[number];
  const bool can_open = CanOpen(process, how);
  const bool gone = !process.in_directory && !process.removed;
  if (!killed && how.state_was_read) {
    // A file that is removed was read.
    truth.opened = truth.opened || (!truth.settled && (process.removed || (!how.soon && can_open)));
    truth.settled = truth.settled || (!truth.opened && gone && !world_.no_descriptors);
  }
  truth.maybe_opened = truth.maybe_opened || can_open;
  truth.stray = truth.stray || (!truth.opened && gone);
  // All that is in a file that the agent has removed is owed, unless it was final before the file came back.
  const bool all = process.removed && !truth.settled;
  truth.owed = truth.lost ? 0 : all ? process.log.size() - 1 : truth.opened ? truth.position_before : truth.durable;

  if (!*process.alive && truth.ended.first == 0) {
    truth.ended.first = collection;
    truth.forward = forward_;
    truth.back = back_;
  }
  if (killed && !truth.end_is_durable) {
    truth.change_is_unknown = true;
    truth.end_may_be_durable = truth.end_may_be_durable || !truth.alive_before;
  }
  if (!killed) LearnGauge(truth, process);
  const bool end_was_seen = process.removed || (!killed && how.state_was_read && truth.opened && !truth.alive_before);
  if (end_was_seen) truth.ended.last = std::min(truth.ended.last, collection);
  truth.end_is_durable = truth.end_is_durable || process.removed;
}

void Oracle::LearnGauge(Truth& truth, const Process& process) {
  if (truth.end_is_durable) return;
  const std::optional<double> gauge = process.log.back().gauge;
  if (!truth.opened || gauge != process.log[truth.position_before].gauge) {
    truth.change_is_unknown = truth.change_is_unknown || truth.opened || truth.maybe_opened;
    return;
  }
  if (truth.seen && truth.seen_gauge == gauge) return;
  truth.seen = true;
  truth.seen_gauge = gauge;
  truth.changed = static_cast<Number>(times_.size() - 1);
}

void Oracle::JudgeCounts(const AllShown& shown, bool saved) {
  for (uint32_t identity = 0; identity < kIdentities; ++identity) {
    const Hidden hidden = HiddenOf(identity);
    const bool may_be_left_out = MayBeLeftOut(identity);
    for (size_t what = 0; what < kCounts; ++what) {
      double least = 0;
      double most = 0;
      for (size_t i = first_; i < truths_.size(); ++i) {
        const Process& process = world_.processes[i];
        if (process.identity != identity) continue;
        least += static_cast<double>(process.log[truths_[i].owed].counts[what]);
        most += static_cast<double>(process.log.back().counts[what]);
      }
      const Hidden removed = what == kRemovedCount ? RemovedOf(identity) : Hidden::kNo;
      if ((hidden != Hidden::kNo || removed != Hidden::kNo) && !shown.of[identity].counts[what]) continue;
      if (removed == Hidden::kYes) Claim("identity " + std::to_string(identity) + " shows a series that was removed");
      if (hidden == Hidden::kYes) Claim("identity " + std::to_string(identity) + " is shown, but has ended long ago");
      const double value = shown.of[identity].counts[what].value_or(0);
      double& floor = floor_[identity][what];
      const auto claim = [&](const std::string& why) {
        Claim("identity " + std::to_string(identity) + " shows " + Text(value) + " " + kCountNames[what] + why + Text(least) +
              " to " + Text(most) + " were counted");
      };
      if (value > most) claim(", counted twice: ");
      if (may_be_left_out) continue;
      if (value < least) claim(", lost: ");
      if (value < floor) claim(" after " + Text(floor) + ": ");
      if (saved && config_.state_elsewhere) floor = std::max(floor, value);
    }
  }
}

// A living process that has it shows it. If none may have it, one that has removed it hides it. If only ended processes had it,
// the one that ended last decides, which the model does not follow; it does if all had removed it.
Oracle::Hidden Oracle::RemovedOf(uint32_t identity) const {
  bool may_be = false;
  bool all_removed = true;
  bool none_present = true;
  bool one_removed = false;
  for (size_t i = first_; i < truths_.size(); ++i) {
    const Process& process = world_.processes[i];
    const Truth& truth = truths_[i];
    if (process.identity != identity) continue;
    const size_t first = truth.stray || truth.lost ? 0 : truth.owed;
    const auto log = std::span(process.log).subspan(first);
    const bool may_have_removed = std::ranges::any_of(log, &Values::removed);
    const bool has_removed = std::ranges::all_of(log, &Values::removed);
    const bool lives = truth.opened && truth.alive_before && *process.alive;
    if (lives && !may_have_removed) return Hidden::kNo;
    may_be = may_be || may_have_removed;
    all_removed = all_removed && has_removed;
    none_present = none_present && (has_removed || !truth.alive_before);
    one_removed = one_removed || (lives && has_removed);
  }
  return !may_be ? Hidden::kNo : all_removed || (none_present && one_removed) ? Hidden::kYes : Hidden::kMaybe;
}

// How many series the processes of an identity have.
size_t Oracle::SeriesOf(uint32_t identity) const {
  size_t series = 0;
  for (size_t i = first_; i < truths_.size(); ++i) {
    const Process& process = world_.processes[i];
    const size_t late = process.log.back().counts[kLateCount] > 0 ? 1 : 0;
    if (process.identity == identity) series = std::max(series, kCounts - 1 + std::size(kPolicies) + 1 + late);
  }
  return series;
}

// Only series beyond a limit are left out.
bool Oracle::MayBeLeftOut(uint32_t identity) const {
  const size_t of_second = SeriesOf(1) + SeriesOf(2);
  return (identity != 0 && of_second > kMaxSeriesOfInstance) ||
         SeriesOf(0) + std::min(of_second, kMaxSeriesOfInstance) > config_.max_series;
}

void Oracle::JudgeLimits(const AllShown& shown) {
  const size_t series = shown.series[0] + shown.series[1];
  if (std::max(shown.series[0], shown.series[1]) > kMaxSeriesOfInstance || series > config_.max_series) {
    Claim("there are " + std::to_string(shown.series[0]) + " and " + std::to_string(shown.series[1]) + " series");
  }
}

// An agent that reads the state asks the wall clock how long ago a process ended.
bool Oracle::MayBeOver(const Truth& truth) const {
  const auto forward = std::max(forward_at_load_ - truth.forward, std::chrono::milliseconds(0));
  return truth.ended.first != 0 && times_.back() >= times_[truth.ended.first] + kGaugeTtl - forward;
}

bool Oracle::IsOver(const Truth& truth) const {
  if (truth.ended.last == UINT32_MAX) return false;
  const auto back = std::max(back_at_load_ - truth.back, std::chrono::milliseconds(0));
  const auto ended = times_[truth.ended.last];
  return times_.back() >= std::max(ended, std::min(ended + back, loaded_at_)) + kGaugeTtl;
}

Oracle::Hidden Oracle::HiddenOf(uint32_t identity) const {
  if (!config_.hides_ended) return Hidden::kNo;
  bool may_be = true;
  bool is = true;
  for (size_t i = first_; i < truths_.size(); ++i) {
    const Process& process = world_.processes[i];
    const Truth& truth = truths_[i];
    if ((process.identity == 0) != (identity == 0)) continue;
    const bool counts_from_state =
        !truth.opened && !truth.stray && !truth.end_is_durable && !truth.end_may_be_durable && truth.durable > 0;
    if (truth.opened ? truth.alive_before : counts_from_state) return Hidden::kNo;
    may_be = may_be && (truth.stray || !truth.opened || MayBeOver(truth));
    // A process that died may be missed.
    is = is && !truth.stray && IsOver(truth) && !process.died;
  }
  return is ? Hidden::kYes : may_be ? Hidden::kMaybe : Hidden::kNo;
}

// All ways in which a process may count in the gauges of its identity.
std::vector<Oracle::Part> Oracle::PartsOf(size_t number) const {
  const Process& process = world_.processes[number];
  const Truth& truth = truths_[number];
  bool nothing = truth.stray;
  bool ended = !truth.alive_before || !*process.alive || !truth.opened;
  const bool living = truth.stray || (truth.opened ? truth.alive_before : truth.maybe_opened);
  if (ended && truth.ended.first != 0) {
    nothing = nothing || MayBeOver(truth);
    ended = !IsOver(truth) || truth.stray;
  }
  std::vector<Part> parts;
  const auto add = [&](Part::As as, double value) {
    const auto same = [&](const Part& part) { return part.as == as && part.value == value; };
    if (std::ranges::none_of(parts, same)) parts.push_back({as, value, number});
  };
  for (size_t at = truth.stray ? 0 : truth.owed; at < process.log.size(); ++at) {
    const std::optional<double> gauge = process.log[at].gauge;
    if (!gauge || nothing) add(Part::As::kNothing, 0);
    if (gauge && living) add(Part::As::kLiving, *gauge);
    if (gauge && ended) add(Part::As::kEnded, *gauge);
  }
  return parts;
}

bool Oracle::CertainlyBefore(const Part& a, const Part& b) const {
  const Truth& of_a = truths_[a.process];
  const Truth& of_b = truths_[b.process];
  const bool strays = of_a.stray || of_b.stray || !of_a.opened || !of_b.opened;
  if (a.as == Part::As::kEnded) {
    if (strays && !(of_a.end_is_durable && of_b.end_is_durable)) return false;
    if (of_a.ended.last < of_b.ended.first) return true;
    if (of_a.ended.first != of_a.ended.last || of_b.ended.first != of_b.ended.last || of_a.ended.first != of_b.ended.first) {
      return false;
    }
  } else if (strays) {
    return false;
  }
  for (const Truth* truth : {&of_a, &of_b}) {
    if (truth->change_is_unknown || truth->changed == 0) return false;
  }
  return std::pair(of_a.changed, a.process) < std::pair(of_b.changed, b.process);
}

// Whether the gauges are those of an identity whose processes count in this way.
bool Oracle::Explains(const std::vector<Part>& parts, const Shown& shown) const {
  const auto lives = [](const Part& part) { return part.as == Part::As::kLiving; };
  const Part::As as = std::ranges::any_of(parts, lives) ? Part::As::kLiving : Part::As::kEnded;
  double sum = 0;
  double min = INFINITY;
  double max = -INFINITY;
  double count = 0;
  bool last = false;
  for (const Part& part : parts) {
    // The clock was set back: the value of the process that ended last may expire first.
    if (part.as == Part::As::kNothing && as == Part::As::kEnded && back_.count() > 0) last = last || !shown.gauges[0];
    if (part.as != as) continue;
    sum += part.value;
    min = std::min(min, part.value);
    max = std::max(max, part.value);
    ++count;
    const auto later = [&](const Part& other) { return other.as == as && CertainlyBefore(part, other); };
    last = last || (shown.gauges[0] == part.value && std::ranges::none_of(parts, later));
  }
  if (count == 0) return std::ranges::all_of(shown.gauges, [](const auto& gauge) { return !gauge; });
  return last && shown.gauges[1] == sum && shown.gauges[2] == min && shown.gauges[3] == max && shown.gauges[4] == sum / count;
}

void Oracle::JudgeGauges(const Shown& shown, uint32_t identity) {
  if (MayBeLeftOut(identity)) return;
  std::vector<std::vector<Part>> choices;
  size_t ways = 1;
  for (size_t i = first_; i < truths_.size(); ++i) {
    if (world_.processes[i].identity != identity) continue;
    choices.push_back(PartsOf(i));
    ways *= choices.back().size();
  }
  constexpr size_t kMaxWays = 4096;
  if (ways > kMaxWays) return;
  std::vector<Part> parts(choices.size());
  for (size_t way = 0; way < ways; ++way) {
    size_t rest = way;
    for (size_t i = 0; i < choices.size(); ++i) {
      parts[i] = choices[i][rest % choices[i].size()];
      rest /= choices[i].size();
    }
    if (Explains(parts, shown)) return;
  }
  std::string text = "identity " + std::to_string(identity) + " shows gauges";
  for (const auto& gauge : shown.gauges) {
    text += " " + (gauge ? std::to_string(*gauge) : "none");
  }
  text += "; its processes:";
  for (const auto& choice : choices) {
    for (const Part& part : choice) {
      text +=
          part.as == Part::As::kNothing ? " none" : (part.as == Part::As::kLiving ? " living " : " ended ") + Text(part.value);
    }
    text += ";";
  }
  Claim(text);
}

}  // namespace persia::agent::model
