#include "notes.h"

#include <algorithm>

#include "recorder.h"
#include "threads.h"

namespace persia::litmus {
namespace {

constexpr uint32_t kNotYet = UINT32_MAX;

}  // namespace

Notes::Act Notes::Ended(uint32_t begin, double amount) const {
  return {begin, waits_ ? kNotYet : Recorder::Get().Now(), amount};
}

uint32_t Notes::Begin() {
  const Unrecorded own;
  return Recorder::Get().Now();
}

void Notes::Published() {
  const Unrecorded own;
  waits_ = false;
  const uint32_t now = Recorder::Get().Now();
  const auto end = [now](Act& act) { act.end = act.end == kNotYet ? now : act.end; };
  for (auto& [name, series] : series_) {
    if (series.made) end(*series.made);
    for (Act& act : series.counts) end(act);
    for (Act& act : series.sets) end(act);
  }
  for (Event& event : events_) end(event.recorded);
}

void Notes::Made(const std::string& series, uint32_t begin) {
  const Unrecorded own;
  Series& noted = series_[series];
  const Act act = Ended(begin, 0);
  if (!noted.made) noted.made = act;
  noted.made->begin = std::min(noted.made->begin, begin);
  // If two threads make it at once, one of them may find it before the other one has published it.
  if (noted.makers.insert(CurrentThread()).second) noted.made->end = std::max(noted.made->end, act.end);
}

void Notes::Counted(const std::string& series, double amount, uint32_t begin) {
  const Unrecorded own;
  series_[series].counts.push_back(Ended(begin, amount));
}

void Notes::Set(const std::string& series, double value, uint32_t begin) {
  const Unrecorded own;
  series_[series].sets.push_back(Ended(begin, value));
}

void Notes::Recorded(uint64_t number, uint32_t begin) {
  const Unrecorded own;
  events_.push_back({Ended(begin, 1), number});
}

void Notes::Exited(uint32_t begin) {
  const Unrecorded own;
  exit_ = Ended(begin, 0);
}

void Notes::Identified(double generation, uint32_t begin) {
  const Unrecorded own;
  identities_.push_back(Ended(begin, generation));
}

}  // namespace persia::litmus
