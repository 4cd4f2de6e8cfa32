#include "health/straggler.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace persia::agent {
namespace {

// Ranks that meet at each step never differ by more steps than the one that they are in, except by the time that passes
// between two reads of a collection.
constexpr double kStepsApart = 2;
constexpr double kShareOfStepsApart = 0.05;
// How many of the newest chunks decide whether a straggler still is one.
constexpr size_t kNewest = 4;
// The phase of a verdict changes if another one is longer by this factor.
constexpr double kClearlyLonger = 1.5;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The standard deviation without the value that is farthest from the median: one long step is no noise.
double Deviation(std::vector<double> values) {
  if (values.size() < 3) return 0;
  const double median = Median(values);
  std::ranges::sort(values, {}, [&](double value) { return std::abs(value - median); });
  values.pop_back();
  const double mean = std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// How far values are apart. Of three or more, the lowest is left out: a second straggler is not noise.
double Spread(std::vector<double> values) {
  if (values.size() < 2) return 0;
  std::ranges::sort(values);
  return values.back() - values[values.size() > 2 ? 1 : 0];
}

// The mean without a sixth of the values at each end: it follows a change at once and gradually, so that agents whose chunks
// begin at other moments show nearly the same, and a single long step does not count.
double MiddleMean(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 6);
  return std::reduce(values.begin() + cut, values.end() - cut) /
         static_cast<double>(values.size() - 2 * static_cast<size_t>(cut));
}

size_t PhaseNumber(std::vector<std::string>& phases, const std::string& phase) {
  const auto found = std::ranges::find(phases, phase);
  if (found == phases.end()) phases.push_back(phase);
  return static_cast<size_t>(std::distance(phases.begin(), std::ranges::find(phases, phase)));
}

std::vector<double> SecondsOf(std::vector<std::string>& phases, const Process& process) {
  std::vector<double> seconds(phases.size());
  for (const auto& [phase, spent] : process.phase_seconds) {
    const size_t number = PhaseNumber(phases, phase);
    if (number >= seconds.size()) seconds.resize(number + 1);
    seconds[number] = spent;
  }
  return seconds;
}

// Phases that were entered later have no share of the chunks before.
double ShareAt(const std::vector<double>& shares, size_t phase) { return phase < shares.size() ? shares[phase] : 0; }

// By how much the share of a rank in a phase is above the median of the other ranks. `ranks`: the shares of each in one chunk.
double AboveOthers(const std::vector<std::vector<double>>& ranks, size_t rank, size_t phase) {
  std::vector<double> others;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (i != rank) others.push_back(ShareAt(ranks[i], phase));
  return ShareAt(ranks[rank], phase) - Median(std::move(others));
}

}  // namespace

double StragglerJudge::Rank::Sync() const {
  const auto found = seconds_per_step.find(std::string(kSyncPhase));
  return found == seconds_per_step.end() ? 0 : found->second;
}

void StragglerJudge::Look(std::span<const Process> processes, TimePoint now, Milliseconds interval) {
  ++looks_;
  bool changed = false;
  std::map<std::string, Members> roles;
  for (const Process& process : processes) {
    if (!IsRank(process) || !process.step || !process.phase_seconds.contains(std::string(kSyncPhase))) continue;
    roles[LabelValueOf(process.identity, "role")].push_back(&process);
  }
  for (auto& [name, members] : roles) {
    std::ranges::sort(members, {}, [](const Process* process) { return RankProcessKeyOf(*process); });
    Role& role = roles_[name];
    role.look = looks_;
    std::vector<RankProcessKey> keys;
    for (const Process* process : members) keys.push_back(RankProcessKeyOf(*process));
    if (keys != role.members) {
      role.members = std::move(keys);
      Restart(role, members, now);
      changed = true;
    } else if (Measure(role, members, now, interval)) {
      changed = true;
    }
  }
  changed = std::erase_if(roles_, [&](const auto& role) { return role.second.look != looks_; }) > 0 || changed;
  if (!changed) return;
  ranks_.clear();
  verdicts_.clear();
  for (const auto& [name, members] : roles) Show(roles_[name], members);
}

std::vector<StragglerJudge::Judged> StragglerJudge::judged() const {
  std::vector<Judged> all;
  for (const auto& [name, role] : roles_) {
    const auto chunks = static_cast<double>(role.brief.chunks.size());
    double steps = 0;
    for (const Chunk& chunk : role.brief.chunks) steps += chunk.steps;
    const double of_chunk = chunks > 0 ? steps / chunks : kStepsOfChunk;
    all.push_back({.role = name,
                   .ranks = role.members.size(),
                   .measured = static_cast<size_t>(std::lround(steps)),
                   .needed = static_cast<size_t>(std::lround(of_chunk * static_cast<double>(kNeeded))),
                   .is_undecided = role.Ruling() == nullptr && (role.brief.is_undecided || role.lengthy.is_undecided)});
  }
  return all;
}

std::optional<StragglerJudge::Evidence> StragglerJudge::EvidenceOf(const std::string& role) const {
  const auto found = roles_.find(role);
  return found == roles_.end() ? std::nullopt : found->second.brief.evidence;
}

// REQUIRES: the role has its members.
void StragglerJudge::Restart(Role& role, const Members& members, TimePoint now) {
  role = {.members = std::move(role.members), .look = role.look};
  for (Window* window : {&role.brief, &role.lengthy}) BeginChunk(role, *window, members, now);
}

bool StragglerJudge::Measure(Role& role, const Members& members, TimePoint now, Milliseconds interval) {
  std::vector<double> steps;
  for (size_t i = 0; i < members.size(); ++i) steps.push_back(*members[i]->step - role.brief.steps[i]);
  const auto [fewest, most] = std::ranges::minmax(steps);
  // The ranks went back to a checkpoint, or do not meet at each step.
  if (fewest < 0 || most - fewest > kStepsApart + kShareOfStepsApart * most) {
    Restart(role, members, now);
    return true;
  }
  // A scrape collects between two looks.
  const bool brief = AddChunk(role, role.brief, members, now, interval * 3 / 4);
  const bool lengthy = AddChunk(role, role.lengthy, members, now, kLongChunk * interval * 3 / 4);
  return brief || lengthy;
}

void StragglerJudge::BeginChunk(Role& role, Window& window, const Members& members, TimePoint now) {
  window.began = now;
  window.steps.clear();
  window.seconds.clear();
  for (const Process* process : members) {
    window.steps.push_back(*process->step);
    window.seconds.push_back(SecondsOf(role.phases, *process));
  }
}

bool StragglerJudge::AddChunk(Role& role, Window& window, const Members& members, TimePoint now, Milliseconds least) {
  if (now - window.began < least) return false;
  std::vector<double> steps;
  for (size_t i = 0; i < members.size(); ++i) steps.push_back(*members[i]->step - window.steps[i]);
  if (std::ranges::min(steps) < kStepsOfChunk) return false;
  Chunk chunk;
  const size_t sync = PhaseNumber(role.phases, std::string(kSyncPhase));
  bool has_sync = false;
  for (size_t i = 0; i < members.size(); ++i) {
    Shares spent = SecondsOf(role.phases, *members[i]);
    double total = 0;
    for (size_t phase = 0; phase < spent.size(); ++phase) {
      spent[phase] = std::max(0.0, spent[phase] - ShareAt(window.seconds[i], phase));
      total += spent[phase];
    }
    for (double& share : spent) share = total > 0 ? share / total : 0;
    has_sync = has_sync || ShareAt(spent, sync) > 0;
    chunk.ranks.push_back(std::move(spent));
  }
  if (!has_sync) return false;  // ranks that accumulate gradients meet in some of their steps
  const std::chrono::duration<double> passed = now - window.began;
  chunk.steps = std::reduce(steps.begin(), steps.end()) / static_cast<double>(steps.size());
  chunk.seconds_per_step = passed.count() / chunk.steps;
  window.chunks.push_back(std::move(chunk));
  if (window.chunks.size() > kChunks) window.chunks.pop_front();
  BeginChunk(role, window, members, now);
  Judge(role, window);
  return true;
}

void StragglerJudge::Judge(Role& role, Window& window) {
  window.evidence.reset();
  window.is_undecided = false;
  const size_t ranks = role.members.size();
  if (ranks < 2 || window.chunks.size() < kLeastChunks) return;
  const size_t sync = PhaseNumber(role.phases, std::string(kSyncPhase));
  std::vector<double> waits(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> shares;
    for (const Chunk& chunk : window.chunks) shares.push_back(ShareAt(chunk.ranks[rank], sync));
    waits[rank] = Median(std::move(shares));
  }
  // The lead of a rank in each chunk, and what a verdict on it needs.
  std::vector<double> leads;
  const auto weigh = [&](size_t rank) {
    leads.clear();
    for (const Chunk& chunk : window.chunks) leads.push_back(-AboveOthers(chunk.ranks, rank, sync));
    std::vector<double> others = waits;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
    const double error = Deviation(leads) / std::sqrt(static_cast<double>(leads.size()));
    return Evidence{.lead = Median(leads),
                    .needed = std::max({kLeastShare, window.demand.standard_errors * error, Spread(std::move(others))})};
  };
  size_t least = static_cast<size_t>(std::ranges::min_element(waits) - waits.begin());
  if (window.is_judged_slow) {
    const Evidence evidence = weigh(*window.candidate);
    window.evidence = evidence;
    const double newest = Median({leads.end() - static_cast<std::ptrdiff_t>(std::min(kNewest, leads.size())), leads.end()});
    window.looks = newest < std::min(evidence.needed, 2 * kLeastShare) / 2 ? window.looks + 1 : 0;
    if (window.looks < kLooksToEnd) {
      window.phase = SlowPhase(role, window, *window.candidate);
      return;
    }
    window.is_judged_slow = false;
    window.candidate.reset();
  }
  // Of two ranks that are equally slow, always the same one.
  if (window.candidate && waits[*window.candidate] < waits[least] + kLeastShare / 2) least = *window.candidate;
  const Evidence evidence = weigh(least);
  window.evidence = evidence;
  window.is_undecided = MiddleMean(leads) >= kLeastShare;
  const auto exceptions = std::ranges::count_if(leads, [&](double lead) { return lead < evidence.lead / 4; });
  if (evidence.lead < evidence.needed || static_cast<size_t>(exceptions) > window.demand.exceptions) {
    window.candidate.reset();
    return;
  }
  window.looks = window.candidate == least ? window.looks + 1 : 1;
  window.candidate = least;
  if (window.looks < kLooksToBegin) return;
  window.phase.clear();
  window.phase = SlowPhase(role, window, least);
  window.is_judged_slow = true;
  window.looks = 0;
}

// The phase in which the rank spends most above the median of the others in the same phase.
std::string StragglerJudge::SlowPhase(const Role& role, const Window& window, size_t rank) {
  const auto lead = [&](size_t phase) {
    std::vector<double> leads;
    for (const Chunk& chunk : window.chunks) leads.push_back(AboveOthers(chunk.ranks, rank, phase));
    return Median(std::move(leads));
  };
  std::string longest;
  double most = 0;
  double before = 0;
  for (size_t phase = 0; phase < role.phases.size(); ++phase) {
    if (role.phases[phase] == kSyncPhase) continue;
    const double longer = lead(phase);
    if (role.phases[phase] == window.phase) before = longer;
    if (longest.empty() || longer > most) {
      most = longer;
      longest = role.phases[phase];
    }
  }
  return !window.phase.empty() && most < kClearlyLonger * before ? window.phase : longest;
}

double StragglerJudge::Window::StepSeconds() const {
  std::vector<double> lengths;
  for (const Chunk& chunk : chunks) lengths.push_back(chunk.seconds_per_step);
  return MiddleMean(std::move(lengths));
}

void StragglerJudge::Show(const Role& role, const Members& members) {
  constexpr size_t kToShow = 2;
  // The longer the chunks, the more alike are what the agents of a job measure.
  const Window& shown = role.lengthy.chunks.size() >= kToShow ? role.lengthy : role.brief;
  for (size_t rank = 0; shown.chunks.size() >= kToShow && rank < members.size(); ++rank) {
    Rank& of_rank = ranks_.emplace_back();
    of_rank.identity = members[rank]->identity;
    for (size_t phase = 0; phase < role.phases.size(); ++phase) {
      std::vector<double> shares;
      for (const Chunk& chunk : shown.chunks) shares.push_back(ShareAt(chunk.ranks[rank], phase));
      of_rank.seconds_per_step[role.phases[phase]] = shown.StepSeconds() * MiddleMean(std::move(shares));
    }
  }
  const Window* const ruling = role.Ruling();
  if (ruling == nullptr) return;
  const double step_seconds = ruling->StepSeconds();
  verdicts_.push_back({.identity = members[*ruling->candidate]->identity,
                       .phase = ruling->phase,
                       .seconds_per_step = std::max(0.0, ruling->evidence->lead) * step_seconds,
                       .step_seconds = step_seconds,
                       .waiting = members.size() - 1});
}

}  // namespace persia::agent
