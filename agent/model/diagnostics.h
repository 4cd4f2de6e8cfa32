// Collects problems of the input, for the caller to log.
//
// Each text is reported once, however often its cause occurs, so that a broken segment does not add a log line per tick.
// Not thread-safe: used by the collector thread alone.
#pragma once

#include <string>
#include <unordered_set>
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
  // Keeps the diagnostic for Take(), unless the same text was reported before.
  void Report(std::string kind, std::string text) {
    // Hostile input can cause new texts at each tick, so the number of remembered texts is limited.
    const bool from_input = kind != "state" && kind != "directory";
    if ((!from_input || reported_.size() < kMaxRemembered) && reported_.insert(text).second) {
      new_.push_back({std::move(kind), std::move(text)});
    }
  }
  // To be called when the cause is gone: the text is reported again if the cause comes back.
  void Forget(const std::string& text) { reported_.erase(text); }

  // The new diagnostics since the last call.
  [[nodiscard]] std::vector<Diagnostic> Take() { return std::exchange(new_, {}); }

 private:
  static constexpr size_t kMaxRemembered = 10000;
  std::unordered_set<std::string> reported_;
  std::vector<Diagnostic> new_;
};

}  // namespace persia::agent
