// Parses the text of the kernel's files: /proc, /sys, cgroups.
//
// Results point into the text. Thread safety: pure functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// The number at the beginning of `text`, after spaces and tabs; none for "max" or "unlimited".
std::optional<uint64_t> LeadingNumber(std::string_view text);

// Takes the next word from `text`; empty at the end.
std::string_view NextWord(std::string_view& text);
// Takes the next line from `text`, without its end.
std::string_view NextLine(std::string_view& text);

// The number after `key` in a text of lines "key number"; a ':' may follow the key.
std::optional<uint64_t> NumberOf(std::string_view text, std::string_view key);

// A line of /proc/<pid>/mountinfo: "35 31 0:32 / /dev/shm rw shared:4 - tmpfs shm rw,size=64k".
struct MountLine {
  dev_t device = 0;
  std::string root = {};          // the directory of the filesystem that is mounted
  std::string point = {};         // where
  std::string_view type = {};     // of the filesystem
  std::string_view options = {};  // of the filesystem
};
// None: the line has another form.
std::optional<MountLine> ParseMountLine(std::string_view line);

}  // namespace persia::agent
