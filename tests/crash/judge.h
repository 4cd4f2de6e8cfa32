// Starts the agent's recovery on the files that a cut has left, and compares it with what the agent has told others.
//
//   Told told;
//   told.Apply(operation);                                 // of each operation up to the cut
//   Judge judge("/dev/shm/states");
//   std::string wrong = judge.Check(image, told, disk);    // empty: all is right
//
// Thread safety: none. It takes over stderr.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/owned_fd.h"
#include "disk.h"
#include "recording.h"
#include "remote/series_plan.h"

namespace persia::agent::crash {

// What must be known after a cut.
struct Told {
  std::set<std::string> groups;       // paths of groups that were PUT
  std::set<std::string> series;       // encoded labels of those that were sent and not ended
  std::vector<std::string> segments;  // of the run: their names, in the order of their begin. The n-th counts 4^n
  std::string run_id;
  std::map<std::string, uint64_t> shown;    // of this run, by group
  uint64_t most = 0;                        // that will be shown in this run
  size_t events = 0;                        // the n-th segment, over all runs, has event "e<n>"
  std::optional<std::string> damaged = {};  // the content of a state in which another program has flipped a bit
  size_t segments_before_damage = 0;
  bool run_may_be_over = false;
  bool run_is_over = false;

  void Apply(const Operation& operation);
  [[nodiscard]] uint64_t Shown() const;
};

class Judge {
 public:
  struct Options {
    std::string directory;  // for states; created and removed
    // Whether a cut leaves the segments; if not, only what was shown must be known.
    bool keeps_segments = true;
    // Whether the state is in the directory "state" below the root, not in "metrics".
    bool state_elsewhere = false;
  };

  explicit Judge(Options options);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  std::string Check(const Image& image, const Told& told, const Disk& disk);
  // Writes the files of the state.
  void Write(const Image& image, const std::string& to);

 private:
  class Recovery;

  [[nodiscard]] std::string QueueName() const;
  // Each: what is wrong, or empty.
  std::string Recover(const Image& image, const Told& told, const Disk& disk);
  [[nodiscard]] std::string WrongCount(uint64_t count, bool same_run, const Told& told) const;
  static std::string WrongGroups(const std::set<std::string>& groups, const Told& told);
  [[nodiscard]] std::string WrongRequests(const std::vector<std::string>& sent, const Image& image, const Disk& disk) const;
  static std::string WrongSeries(const SeriesTable& series, const std::vector<std::string>& sent, const Told& told);
  static std::string WrongEvents(const std::string& root, const Image& image, const Told& told);

  const Options options_;
  std::map<const Content*, std::string> segments_;  // files to link
  const OwnedFd log_;
  const OwnedFd stderr_;
};

}  // namespace persia::agent::crash
