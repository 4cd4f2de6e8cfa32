#include "executions.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "programs.h"
#include "reader_memory.h"
#include "segment/segment_reader.h"

namespace persia::litmus {
namespace {

using agent::SegmentReader;
using metrics::segment::Kind;

// What a read shows, by the names of notes.h.
struct Shown {
  std::set<std::string> series;
  std::map<std::string, double> counts;
  std::map<std::string, std::optional<double>> values;
};

Shown ShownBy(const SegmentReader& reader) {
  Shown shown;
  const agent::SegmentValues& values = reader.values();
  std::vector<double> terms;
  const auto real = [&](uint32_t index) {
    terms.clear();
    values.AppendTerms(index, terms);
    double sum = 0;
    for (const double term : terms) sum += term;
    return sum;
  };
  const auto wholes = [&](uint32_t first, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += values.wholes[first + i];
    return static_cast<double>(sum);
  };
  const auto last = [&](uint32_t common) -> std::optional<double> {
    const uint64_t bits = values.commons[common];
    return bits == metrics::segment::kUnset ? std::nullopt : std::optional(std::bit_cast<double>(bits));
  };
  for (const agent::SegmentSeries& series : reader.series()) {
    const agent::SegmentFamily& family = reader.families()[series.record.family];
    std::string name = family.name;
    agent::VisitLabels(reader.records(), series.record,
                       [&](std::string_view /*of*/, std::string_view value) { name += "{" + std::string(value) + "}"; });
    shown.series.insert(name);
    shown.values[name + " removed"] = series.record.removed ? 1 : 0;
    const auto bounds = static_cast<uint32_t>(family.bounds.size());
    switch (family.kind) {
      case Kind::kCounter:
        shown.counts[name] = wholes(series.whole, 1) + real(series.real);
        if (family.clock) shown.counts[name] = std::round(shown.counts[name]);
        break;
      case Kind::kGauge:
        shown.values[name] = last(series.common);
        shown.counts[name] = shown.values[name].value_or(0);
        break;
      case Kind::kHistogram:
      case Kind::kNativeHistogram:
        shown.counts[name] = wholes(series.whole + 1, bounds + 1);
        shown.counts[name + " sum"] = real(series.real);
        break;
      case Kind::kStream:
        shown.values[name] = last(series.common);
        shown.counts[name + " count"] =
            wholes(series.whole + metrics::segment::kStreamNegatives, metrics::segment::kStreamBuckets + 2);
        shown.counts[name + " sum"] = real(series.real);
        break;
      case Kind::kEvent:
        shown.counts[name] = wholes(series.whole + 1, 1);
        break;
      case Kind::kClock:
        break;
    }
  }
  return shown;
}

template <class T>
std::string Text(const T& number) {
  return std::to_string(static_cast<int64_t>(number));
}

class Reader {
 public:
  Reader(const Recorder& recorder, const Notes& notes, std::shared_ptr<const std::string> image, Choices& choices)
      : recorder_(recorder),
        notes_(notes),
        arrives_(choices.OfTwo()),
        end_(choices.OfTwo() && choices.OfTwo() ? choices.OfPosition(recorder.named_at(), LastStore()) : LastStore()),
        memory_(MemoryOf(recorder), image->data(), choices, end_) {
    memory_.Learn(*recorder.named());
    memory_.MoveTo(recorder.named_at());
    memory_.Move();
    agent::SegmentProblem problem;
    auto file = agent::SegmentFile::FromMemory(
        std::move(image), [this] { return AskWriter(); }, {}, problem);
    reader_ = SegmentReader::FromFile(std::move(file));
    if (reader_ == nullptr) Claim("the file is refused: " + problem.text);
  }

  Execution Run() {
    for (int left = kReads - 1; left >= 0 && wrong_.empty(); --left) {
      const uint32_t before = memory_.position();
      memory_.Move();
      if (left == 0) {
        lives_ = false;
        memory_.MoveTo(end_);
      }
      if (arrives_) Arrived(before);
      if (mark_was_seen_) certain_ = std::max(certain_, notes_.exit()->begin);
      Read();
      last_position_ = memory_.position();
    }
    if (wrong_.empty()) CheckEnd();
    return {wrong_, memory_.loads()};
  }

 private:
  static constexpr int kReads = 4;

  static const Memory& MemoryOf(const Recorder& recorder) { return const_cast<Recorder&>(recorder).memory(); }
  [[nodiscard]] uint32_t LastStore() const { return MemoryOf(recorder_).now(); }
  void Claim(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // A released lock orders all that its writer did.
  bool AskWriter() {
    if (!lives_) Arrived(end_);
    return lives_;
  }
  void Arrived(uint32_t position) {
    memory_.LearnAllUpTo(position);
    certain_ = std::max(certain_, position);
  }

  void Read() {
    const bool alive = reader_->WriterLives();
    agent::SegmentProblem problem;
    ++tick_;
    const bool read = reader_->Read(tick_, std::chrono::system_clock::time_point(std::chrono::seconds(tick_)), problem);
    if (!memory_.wrong().empty()) return Claim(memory_.wrong());
    if (!read) return Claim("a good segment is refused: " + problem.text);
    if (reader_->records_skipped() > 0) return Claim("a good record is skipped");
    CheckSeries();
    CheckIdentity();
    CheckMark(alive);
    CheckEvents(alive);
  }

  [[nodiscard]] bool MayShow(const Notes::Act& act) const { return act.begin < memory_.position(); }
  [[nodiscard]] bool MustShow(const Notes::Act& act) const { return act.end <= certain_; }

  void CheckSeries() {
    const Shown shown = ShownBy(*reader_);
    for (const std::string& name : shown.series) {
      const auto noted = notes_.series().find(name);
      if (noted == notes_.series().end() || !noted->second.made || !MayShow(*noted->second.made)) {
        Claim("series " + name + " is shown, which does not exist");
      }
      const std::string removed = name + " removed";
      if (!notes_.series().contains(removed) && shown.values.at(removed) != 0)
        Claim("series " + name + " is shown as removed, but nothing removed it");
    }
    for (const auto& [name, noted] : notes_.series()) {
      if (noted.made && MustShow(*noted.made) && !shown.series.contains(name)) Claim("series " + name + " is missing");
      CheckCount(name, noted, shown);
      CheckValue(name, noted, shown);
    }
  }

  void CheckCount(const std::string& name, const Notes::Series& noted, const Shown& shown) {
    double least = 0;
    double most = 0;
    const auto whole = notes_.series().find(name.substr(0, name.find(' ')));
    const bool is_there = whole != notes_.series().end() && whole->second.made && MustShow(*whole->second.made);
    for (const Notes::Act& act : noted.counts) {
      most += MayShow(act) ? act.amount : 0;
      least += is_there && MustShow(act) ? act.amount : 0;
    }
    const auto found = shown.counts.find(name);
    const double value = found == shown.counts.end() ? 0 : found->second;
    double& before = counts_[name];
    const std::string what = name + " is " + std::to_string(value);
    if (value > most && !noted.counts.empty()) Claim(what + "; at most " + std::to_string(most) + " were counted");
    if (notes_.counts_may_be_lost || noted.counts.empty()) return;
    if (value < least) Claim(what + "; at least " + std::to_string(least) + " were counted");
    if (value < before) Claim(what + " after " + std::to_string(before));
    before = value;
  }

  void CheckValue(const std::string& name, const Notes::Series& noted, const Shown& shown) {
    if (noted.sets.empty()) return;
    const auto found = shown.values.find(name);
    if (found == shown.values.end()) return;
    const bool is_there = !noted.made || MustShow(*noted.made);
    const auto& sets = noted.sets;
    // 0: unset; else 1 + the index of the oldest set that may be meant, as several may set the same value.
    const auto may_be = [&](size_t i) {
      const bool is_late = is_there && i < sets.size() && MustShow(sets[i]);
      return !is_late && (i == 0 ? !found->second : MayShow(sets[i - 1]) && found->second == sets[i - 1].amount);
    };
    size_t& shown_set = values_[name];
    while (shown_set <= sets.size() && !may_be(shown_set)) ++shown_set;
    if (shown_set <= sets.size()) return;
    Claim(name + " is " + (found->second ? std::to_string(*found->second) : "unset") +
          ", which it is not any more or never was");
  }

  void CheckIdentity() {
    const agent::Labels& labels = reader_->identity().labels;
    const auto& acts = notes_.identities();
    for (size_t i = acts.size(); i > 0; --i) {
      if (labels.empty() || labels[0].second != Text(acts[i - 1].amount)) continue;
      if (!MayShow(acts[i - 1]) && i > 1) Claim("the process's label is of a later time");
      if (i < acts.size() && MustShow(acts[i])) Claim("the process's label is old");
      return;
    }
    Claim("the process's label was never set");
  }

  void CheckMark(bool alive) {
    const uint64_t mark = reader_->exit_mark();
    if (mark_was_seen_ && mark == 0) Claim("the mark of an exit is gone");
    if (mark != 0 && (!notes_.exit() || !MayShow(*notes_.exit()) || mark != metrics::segment::kExitCode + kExitCode)) {
      Claim("the mark of an exit is " + std::to_string(mark));
    }
    if (!alive && notes_.exit() && MustShow(*notes_.exit()) && mark == 0) Claim("the mark of an exit is missing");
    mark_was_seen_ = mark != 0;
  }

  void CheckEvents(bool alive) {
    std::vector<agent::JobEvent> events;
    reader_->ReadEvents(alive, events);
    if (!memory_.wrong().empty()) return Claim(memory_.wrong());
    for (const agent::JobEvent& event : events) {
      CheckEvent(event);
    }
    if (notes_.events_of_several || !arrives_) return;
    const auto& noted = notes_.events();
    for (const Notes::Event& event : noted) {
      // A record that one read and the next find incomplete counts as lost.
      if (event.recorded.begin < last_position_ && !MustShow(event.recorded)) may_be_lost_.insert(event.number);
    }
    const uint64_t begun =
        static_cast<uint64_t>(std::ranges::count_if(noted, [&](const Notes::Event& event) { return MayShow(event.recorded); }));
    for (size_t i = 0; i < noted.size(); ++i) {
      const bool may_be_overwritten = i + reader_->header().ring_slots < begun;
      if (MustShow(noted[i].recorded) && !may_be_overwritten && !may_be_lost_.contains(noted[i].number) &&
          !events_.contains(noted[i].number)) {
        Claim("event " + std::to_string(noted[i].number) + " is not shown");
      }
    }
  }

  void CheckEvent(const agent::JobEvent& event) {
    const auto torn = [&] { Claim("a torn event is shown: " + event.name); };
    if (event.name != "step" || event.type != "training" || event.metadata.size() != 3) return torn();
    const auto* number = std::get_if<int64_t>(&event.metadata[0].second);
    const auto* text = std::get_if<std::string>(&event.metadata[1].second);
    const auto* half = std::get_if<double>(&event.metadata[2].second);
    if (number == nullptr || text == nullptr || half == nullptr || *half != static_cast<double>(*number) / 2) return torn();
    const auto n = static_cast<uint64_t>(*number);
    if (*text != std::string(16 + n % 24, static_cast<char>('a' + n % 26))) return torn();
    const auto noted = std::ranges::find(notes_.events(), n, &Notes::Event::number);
    if (noted == notes_.events().end() || !MayShow(noted->recorded)) return Claim("event " + Text(n) + " was not recorded");
    if (!events_.insert(n).second) return Claim("event " + Text(n) + " is shown twice");
    if (!notes_.events_of_several && *events_.rbegin() != n) return Claim("event " + Text(n) + " is shown after a later one");
  }

  // All tickets are read or lost.
  void CheckEnd() {
    const uint64_t seen = events_.size() + reader_->events().lost();
    if (seen != reader_->events().next()) {
      Claim(Text(events_.size()) + " events are shown, " + Text(reader_->events().lost()) + " are lost, of " +
            Text(reader_->events().next()));
    }
    const size_t recorded = notes_.events().size();
    if (!notes_.counts_may_be_lost && end_ == LastStore() && seen != recorded) {
      Claim(Text(seen) + " of " + Text(recorded) + " events are shown or lost");
    }
  }

  const Recorder& recorder_;
  const Notes& notes_;
  const bool arrives_;  // what was stored before a read arrives before the next one
  const uint32_t end_;
  ReaderMemory memory_;
  std::unique_ptr<SegmentReader> reader_;
  bool lives_ = true;
  uint32_t last_position_ = 0;  // of the writer, at the end of the read before
  uint32_t certain_ = 0;        // all stores up to this one have certainly reached the reader
  bool mark_was_seen_ = false;
  uint64_t tick_ = 0;
  std::map<std::string, double> counts_;  // shown before
  std::map<std::string, size_t> values_;
  std::set<uint64_t> events_;
  std::set<uint64_t> may_be_lost_;
  std::string wrong_;
};

}  // namespace

Execution Execute(const Recorder& recorder, const Notes& notes, const std::shared_ptr<const std::string>& image,
                  Choices& choices) {
  return Reader(recorder, notes, image, choices).Run();
}

}  // namespace persia::litmus
