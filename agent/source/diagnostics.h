// What a source has to say about its input, for whoever owns the log.
//
// Each text is reported once, however often its cause is met, so that a broken segment does not cost a line a tick.
// Not thread-safe: used by the collector thread alone.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace persia::agent {

// One sentence for the log.
struct Diagnostic {
  // What it is about, for counting: "refused", "conflict", "collision", "segment", "directory".
  std::string kind;
  std::string text;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

class Diagnostics {
 public:
  // Keeps it for Take(), unless the same was reported before.
  void Report(std::string kind, std::string text) {
    // Hostile input could invent a new sentence each tick; the memory of what was said stays bounded.
    const bool ours = kind == "state" || kind == "directory";  // which no input can make up
    if ((ours || said_.size() < kMaxRemembered) && said_.insert(text).second) {
      fresh_.push_back({std::move(kind), std::move(text)});
    }
  }
  // Says it again, should it come up again: its cause had gone.
  void Forget(const std::string& text) { said_.erase(text); }

  // What was reported since the last call.
  [[nodiscard]] std::vector<Diagnostic> Take() { return std::exchange(fresh_, {}); }

 private:
  static constexpr size_t kMaxRemembered = 10000;
  std::unordered_set<std::string> said_;
  std::vector<Diagnostic> fresh_;
};

}  // namespace persia::agent
