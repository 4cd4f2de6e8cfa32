// Settings while they are read, source after source, in ascending precedence. A wrong value changes nothing: the value of a
// former source, or the default, stays. But if the setting decides where an output sends data, the output is off, unless a
// later source has a valid value.
//
//   ConfigDraft draft;
//   draft.Set(setting, "10s", "--push-interval: ", /*lasting=*/true);
//   Config config = draft.Finish();
//
// Thread safety: none.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/options.h"
#include "config/settings.h"

namespace persia::agent {

class ConfigDraft {
 public:
  AgentOptions options;
  // Of keys without effect, one line each.
  std::vector<std::string> notes;

  // Sets the value, or adds an error that begins with `place`.
  void Set(const Setting& setting, std::string_view value, const std::string& place, bool lasting);
  // The current source has valid values of the setting, which are in `options`.
  void Accept(const Setting& setting) { wrong_.erase(&setting); }
  // The current source's value of the setting is wrong.
  void Refuse(const Setting& setting, std::string error, bool lasting = false);
  // An unknown name. `meant` is the setting of which it may be a misspelling, or null.
  void RefuseName(std::string error, const Setting* meant);
  // The settings of the file are not read. `content` is its text, if it is known: only settings that it mentions can be lost.
  void RefuseFile(std::string error, const std::string* content);
  // An error with its own consequence.
  void Add(ConfigError error) { mistakes_.push_back({std::move(error), {}}); }

  // Switches outputs off. Returns the errors with their consequences, in the order in which they were added.
  std::vector<ConfigError> Finish();

 private:
  struct Mistake {
    ConfigError error;
    std::vector<const Setting*> settings;
  };

  [[nodiscard]] std::string Consequence(const Mistake& mistake) const;

  std::vector<Mistake> mistakes_;
  std::set<const Setting*> wrong_;  // in the last source that has them
};

// The setting of which an unknown key or flag may be a misspelling, if an error in that setting switches an output off; else
// null.
const Setting* DecidingSetting(std::string_view name);

}  // namespace persia::agent
