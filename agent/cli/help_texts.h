// The texts of the program's help, except those of single flags that are no settings.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "config/settings.h"

namespace persia::agent {

// What a command does, in one line.
[[nodiscard]] const char* DescriptionOf(CommandLine::Verb verb);
// How much the help says: what is usual, or all.
enum class HelpLevel { kUsual, kAll };

// Whether the usual help of the command has the setting's flag. The command takes those of all settings.
[[nodiscard]] bool IsUsual(CommandLine::Verb verb, const Setting& setting);
// The help of a setting: its default, and, in all of the help, its environment variables.
[[nodiscard]] std::string DescriptionOf(const Setting& setting, HelpLevel level);
// The text below the flags of a command; empty: none.
[[nodiscard]] std::string FooterOf(CommandLine::Verb verb, HelpLevel level);
// The text below the list of commands: examples and, in all of the help, the rest that concerns all commands.
[[nodiscard]] std::string ProgramFooter(HelpLevel level);

}  // namespace persia::agent
