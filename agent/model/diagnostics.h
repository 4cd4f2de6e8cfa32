// Collects problems of the input, for the caller to log.
//
// Each text is reported once, even if its cause occurs often, so that a broken segment does not add a log line per tick.
// Hostile input can cause new texts at each tick: each kind has a token bucket of `burst` texts, refilled by one every
// `refill`, and remembers the last `remembered` texts. A text that finds no token is not remembered, so that it is reported
// later if its cause lasts. Not thread-safe: used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace persia::agent {

// One sentence for the log.
struct Diagnostic {
  // For counting: "refused", "conflict", "collision", "segment", "directory" and others.
  std::string kind;
  std::string text;
};

class Diagnostics {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    size_t burst = 100;
    std::chrono::seconds refill{6};
    size_t remembered = 1000;
    size_t text_bytes = 2048;  // longer texts are cut
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
  };

  Diagnostics() : Diagnostics(Options()) {}
  explicit Diagnostics(Options options) : options_(std::move(options)) {}

  // Keeps the diagnostic for Take(), unless the same text was reported before or the kind has no token.
  void Report(const std::string& kind, std::string text);
  // To be called when the cause is gone: if the cause returns, the text is reported again.
  void Forget(std::string text);

  // The new diagnostics since the last call.
  [[nodiscard]] std::vector<Diagnostic> Take() { return std::exchange(new_, {}); }

 private:
  struct Kind {
    double tokens = 0;
    TimePoint filled = {};
    bool is_flooded = false;       // a text found no token, and fewer than half of the tokens are back
    std::list<std::string> texts;  // the one reported least recently first
    std::unordered_map<std::string_view, std::list<std::string>::iterator> by_text;  // views of `texts`
  };

  // Not within a UTF-8 sequence.
  void Cut(std::string& text) const;

  const Options options_;
  std::map<std::string, Kind> kinds_;  // few: the code names them
  std::vector<Diagnostic> new_;
};

}  // namespace persia::agent
