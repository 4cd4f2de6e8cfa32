#include "progress_line.h"

#include <unistd.h>

#include <cmath>

namespace embedding_job {
namespace {

constexpr double kIntervalSeconds = 1;

}  // namespace

ProgressLine::ProgressLine(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) != 0) {}

void ProgressLine::Show(const State& state) {
  if (state.elapsed_seconds < shown_.elapsed_seconds + kIntervalSeconds) return;
  const std::string line = Render(state, shown_);
  if (terminal_) {
    std::fprintf(out_, "\r%s\x1b[K", line.c_str());
    open_ = true;
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
  shown_ = state;
}

void ProgressLine::End() {
  if (open_) {
    std::fputc('\n', out_);
    std::fflush(out_);
    open_ = false;
  }
}

std::string ProgressLine::Render(const State& state, const State& before) {
  const double seconds = state.elapsed_seconds - before.elapsed_seconds;
  const auto rate = [&](uint64_t now, uint64_t then) { return seconds > 0 ? static_cast<double>(now - then) / seconds : 0; };
  char line[160];
  std::snprintf(line, sizeof(line), "%6.1f s  epoch %u  %6.0f batches/s  %6s pairs/s  loss %.4f  %.0f s remaining",
                state.elapsed_seconds, state.epoch + 1, rate(state.batches, before.batches),
                ShortNumber(rate(state.pairs, before.pairs)).c_str(), state.loss, std::ceil(state.remaining_seconds));
  return line;
}

std::string ShortNumber(double value) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G"}) {
    if (value < 999.5) break;
    value /= 1000;
    suffix = next;
  }
  char text[32];
  std::snprintf(text, sizeof(text), value < 9.95 && *suffix != 0 ? "%.1f%s" : "%.0f%s", value, suffix);
  return text;
}

}  // namespace embedding_job
