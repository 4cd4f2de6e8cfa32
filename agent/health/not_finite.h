// Names the gauges of the job whose value is no number, NaN or an infinity, since when, and the step of their rank then.
//
//   NotFiniteJudge judge;
//   judge.Look(snapshot, processes, wall_now);      // after each collection
//   std::shared_ptr<const NotFiniteReport> report = judge.report();
//   std::vector<JobEvent> events = judge.TakeEvents();
//   judge.nan_counts();
//
// Only families that a program declared are judged. For each family that begins to have such a value there is one event of type
// "persia.agent" and one line in the log, however many ranks it has (value_not_finite), and one when its ranks have numbers
// again (value_finite). A series that disappears is no number again: its rank ended. Thread safety: none; used by the collector
// thread alone. A report does not change.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/events.h"
#include "model/process.h"
#include "model/snapshot.h"

namespace persia::agent {

struct NotFiniteValue {
  std::string family;
  Identity identity;
  Labels labels = {};  // without those of the identity
  std::string value;   // "NaN", "+Inf", "-Inf"
  std::chrono::system_clock::time_point since = {};
  std::optional<double> step = {};  // of the rank, when it was found; none: it gives none
};

struct NotFiniteReport {
  // A family with such values.
  struct Family {
    NotFiniteValue first;  // the longest one
    size_t others = 0;     // further series
  };
  std::vector<NotFiniteValue> values = {};  // the longest ones first; at most kMost
  std::vector<Family> families = {};        // the longest ones first; at most kMostFamilies

  static constexpr size_t kMost = 100;
  static constexpr size_t kMostFamilies = 20;
};

// "NaN", "+Inf", "-Inf"; "" of a number.
[[nodiscard]] std::string NotFiniteText(double value);
// Of each identity and gauge: how many of its series are NaN.
using NanCounts = std::map<std::pair<Identity, std::string>, size_t>;

// "my_app_loss is NaN on trainer rep_3 and 2 others, since step 301". `others`: further series of the family.
[[nodiscard]] std::string SentenceOf(const NotFiniteValue& value, size_t others = 0);

class NotFiniteJudge {
 public:
  using TimePoint = std::chrono::system_clock::time_point;

  void Look(const Snapshot& snapshot, std::span<const Process> processes, TimePoint now);

  // Of the last Look. Never null.
  [[nodiscard]] std::shared_ptr<const NotFiniteReport> report() const { return report_; }
  // Of the last Look. Infinities do not count: a best loss may begin as one.
  [[nodiscard]] const NanCounts& nan_counts() const { return nan_counts_; }
  // Those since the last call.
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  struct Key {
    std::string family;
    Identity identity;
    Labels labels;
    auto operator<=>(const Key&) const = default;
  };
  using Known = std::map<Key, NotFiniteValue>;

  void ReportNew(const Known& found);
  void ReportGone(const Known& found, const Snapshot& snapshot, TimePoint now);

  Known known_;
  std::shared_ptr<const NotFiniteReport> report_ = std::make_shared<NotFiniteReport>();
  NanCounts nan_counts_;
  std::vector<JobEvent> events_;
};

}  // namespace persia::agent
