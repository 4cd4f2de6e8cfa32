// Reads the settings again, from the same file, environment and flags as at startup, and applies those that are `reloadable` in
// the table of settings.cc.
//
//   Reloader reloader({.sources = sources, .current = options, .apply = [&](const AgentOptions& o) { agent.Reconfigure(o); },
//                      .note = [&](bool good, size_t errors) { own.ConfigReloaded(good, errors); }});
//   std::vector<std::string> errors = reloader.Reload();   // empty: done
//
// One error refuses the reload as a whole: the current settings stay. Only errors in flags and variables do not refuse it,
// since no reload can correct them. If settings that are not reloadable have changed, a warning names them. To make a setting
// reloadable, mark it in settings.cc and handle its change in Agent::Reconfigure or Agent::Collect.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "config/config.h"
#include "config/options.h"

namespace persia::agent {

class Reloader {
 public:
  struct Options {
    ConfigSources sources;
    AgentOptions current;  // as loaded at startup
    std::function<void(const AgentOptions&)> apply;
    std::function<void(bool good, size_t errors)> note;  // called once a reload
  };

  explicit Reloader(Options options) : options_(std::move(options)), current_(options_.current) {}

  // The errors, one line each; empty if the settings are in effect.
  std::vector<std::string> Reload();

 private:
  const Options options_;
  Mutex mutex_;  // held during a reload
  AgentOptions current_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
