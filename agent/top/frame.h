// The lines of `top`, from the agents' answers and what the user chose.
//
//   const Frame frame = BuildFrame(fleet.Views(), view, {.width = 80, .height = 24, .clock = "14:03:22"});
//   for (const FrameLine& line : frame.lines) ...
//
// Jobs come in the order of their states, the worst first. The ranks of a job are sorted by the user's column.
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "top/fleet.h"
#include "top/shown_text.h"

namespace persia::agent {

enum class SortKey : uint8_t { kState, kName, kThroughput, kMemory, kCpu, kRestarts };
SortKey NextSortKey(SortKey key);

enum class LineStyle : uint8_t { kPlain, kTitle, kGood, kWarning, kBad, kDim, kKeys };

struct TopView {
  SortKey sort = SortKey::kState;
  bool reverse = false;
  std::string filter{};  // jobs and ranks with this text, in any case
  bool types_filter = false;
  std::string only{};  // the target of this name; empty: all
  size_t selected = 0;
  bool paused = false;
  bool help = false;
};

struct FrameSize {
  size_t width = 80;
  size_t height = 24;  // 0: as many lines as there are
  Charset charset = Charset::kAscii;
  std::string clock{};
};

struct FrameLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;
  bool selected = false;
};

struct Frame {
  std::vector<FrameLine> lines;
  // The target of each line that can be selected, in order.
  std::vector<std::string> rows;
};

Frame BuildFrame(const std::vector<AgentView>& agents, const TopView& view, const FrameSize& size);

}  // namespace persia::agent
