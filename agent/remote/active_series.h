// Which series a target was sent samples of and no end: kept in a file, so that an agent can end those that went while none was
// there.
//
// The file holds them before their first sample is in the queue, and until their end is: whoever is killed at whatever
// instruction, it may hold more than it should, and never less. Thread safety: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/series_table.h"
#include "state/state_file.h"

namespace persia::agent {

class ActiveSeries {
 public:
  struct Options {
    StateFile::Options file;  // magic and version are set here
    std::function<void(const std::string& message)> warn = [](const auto&) {};
  };

  explicit ActiveSeries(Options options);

  // What the agent before has left, once; of a file that cannot be understood nothing, with a word in the log. Of one that
  // cannot be read now nothing either: then it is to be called again.
  SeriesTable Load();
  [[nodiscard]] bool loaded() const { return loaded_; }
  // On disk when it returns; if that fails, the log says so, once. It fails as long as there is no Load: what the agent before
  // has left is not replaced.
  void Save(const std::vector<std::string_view>& labels);
  // Whether the last Save failed.
  [[nodiscard]] bool unsaved() const { return unsaved_; }

 private:
  const Options options_;
  StateFile file_;
  bool loaded_ = false;
  bool unread_told_ = false;
  bool unsaved_ = false;
  bool unsaved_told_ = false;
};

}  // namespace persia::agent
