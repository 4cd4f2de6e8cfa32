// Reads the settings again, from the file, environment and flags of the start, and hands on what may change under way.
//
//   Reloader reloader({.sources = sources, .current = options, .apply = [&](const AgentOptions& o) { agent.Reconfigure(o); },
//                      .note = [&](bool good) { own.ConfigReloaded(good); }});
//   std::vector<std::string> errors = reloader.Reload();   // empty: done
//
// Settings that are refused are refused as a whole: those in use stay. What may change is what has a `take_over` in the table
// of settings.cc; what differs and has none is named in one warning. Whoever adds a setting that may change gives it a
// `take_over`, and sets what depends on it in Agent::TakeOverForCollecting or in GatewayRoutes. Thread safety: any thread.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/options.h"

namespace persia::agent {

class Reloader {
 public:
  struct Options {
    ConfigSources sources;
    AgentOptions current;
    std::function<void(const AgentOptions&)> apply;
    std::function<void(bool good)> note;
  };

  explicit Reloader(Options options) : options_(std::move(options)) {}

  // What is wrong, one line each; empty if the settings are in effect.
  std::vector<std::string> Reload();

 private:
  Options options_;
  std::mutex mutex_;  // one reload at a time; guards options_.current
};

}  // namespace persia::agent
