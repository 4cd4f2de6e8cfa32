// Prints the progress of the training, about once a second.
//
// On a terminal it rewrites one line; elsewhere it prints a new line each time. Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace embedding_job {

class ProgressLine {
 public:
  // Totals so far.
  struct State {
    uint64_t batches = 0;
    uint64_t pairs = 0;
    uint32_t epoch = 0;
    double loss = 0;
    double elapsed_seconds = 0;
    double remaining_seconds = 0;
  };

  // `out` must outlive it.
  explicit ProgressLine(std::FILE* out);

  // Prints the state if a second has passed since the last time. The first call starts the clock.
  void Show(const State& state);
  // Ends the line that is rewritten.
  void End();

  // The line for a state, with the rates since `before`.
  static std::string Render(const State& state, const State& before);

 private:
  std::FILE* const out_;
  const bool terminal_;
  State shown_;
  bool open_ = false;
};

// 1234567 as "1.2M".
std::string ShortNumber(double value);

}  // namespace embedding_job
