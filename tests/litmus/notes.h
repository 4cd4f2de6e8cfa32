// What a program has counted, by its own account: the values that a reader may show at each point of the recording.
//
//   notes.Begin() ... the program counts ... notes.Counted("steps", 3, begun)
//
// An operation begins and ends at numbers of stores (Recorder::Now). A reader to which all stores up to its end have come shows
// it; none shows it before it began. Thread safety: one thread runs at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace persia::litmus {

class Notes {
 public:
  struct Act {
    uint32_t begin = 0;
    uint32_t end = 0;
    double amount = 0;
  };
  struct Series {
    std::optional<Act> made;    // none: a part of another series' value
    std::set<uint32_t> makers;  // threads
    std::vector<Act> counts;    // of any thread
    std::vector<Act> sets;      // of one thread
  };
  struct Event {
    Act recorded;
    uint64_t number = 0;
  };

  static uint32_t Begin();
  // The series wait to be exported: what is counted is published later, at the latest now.
  void Wait() { waits_ = true; }
  void Published();
  void Made(const std::string& series, uint32_t begin);
  void Counted(const std::string& series, double amount, uint32_t begin);
  void Set(const std::string& series, double value, uint32_t begin);
  void Recorded(uint64_t number, uint32_t begin);
  void Exited(uint32_t begin);
  // The process's label `generation` has this value from now on.
  void Identified(double generation, uint32_t begin);

  [[nodiscard]] const std::map<std::string, Series>& series() const { return series_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const std::vector<Act>& identities() const { return identities_; }
  [[nodiscard]] const std::optional<Act>& exit() const { return exit_; }
  // Whether several threads record events: then the order of their tickets is not known.
  bool events_of_several = false;
  // Whether counts are left out that the library may lose: those of other threads while Init runs.
  bool counts_may_be_lost = false;

 private:
  Act Ended(uint32_t begin, double amount) const;

  bool waits_ = false;
  std::map<std::string, Series> series_;
  std::vector<Event> events_;
  std::vector<Act> identities_;
  std::optional<Act> exit_;
};

}  // namespace persia::litmus
