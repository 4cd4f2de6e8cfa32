// The screen of `top`: keys and lines on a terminal. The adapter of ncurses.
//
//   if (const auto problem = ProblemOfTerminal()) ... print one frame instead
//   RunScreen(fleet, 1s);   // until q or a signal that ends; the terminal is as before
//
// Thread safety: one thread; the fleet has its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "top/fleet.h"
#include "top/frame.h"

namespace persia::agent {

// The character set of the locale in the environment. Sets LC_CTYPE; call it before other threads start.
Charset CharsetOfLocale();

// Why stdin and stdout cannot show the screen: not a terminal, or one that cannot move the cursor.
std::optional<std::string> ProblemOfTerminal();

// Shows the fleet, and draws again after each interval, at most 250 ms. Returns the signal that ended it, 0 after q.
// REQUIRES: ProblemOfTerminal() is empty.
Result<int> RunScreen(Fleet& fleet, std::chrono::milliseconds interval, Charset charset);

// What a key does with the view. `rows`: the targets of the lines of the last frame. Returns false for q.
enum class Key : uint8_t { kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kEscape, kBackspace, kText };
bool ApplyKey(TopView& view, Key key, char text, const std::vector<std::string>& rows, size_t page);

// "14:03:22", local time.
std::string ClockText();

}  // namespace persia::agent
