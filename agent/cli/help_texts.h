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
// The help of a setting: its default, and its environment variables.
[[nodiscard]] std::string DescriptionOf(const Setting& setting);
// The text below the flags of a command; empty: none.
[[nodiscard]] std::string FooterOf(CommandLine::Verb verb);
// The text below the list of commands: examples, and the exit codes.
[[nodiscard]] const char* ProgramFooter();

}  // namespace persia::agent
