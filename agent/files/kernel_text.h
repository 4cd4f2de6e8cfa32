// Parses the text of the kernel's files: /proc, /sys, cgroups.
//
// Results point into the text. Thread safety: pure functions.
#pragma once

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

// Whether `word` is in a list that commas separate.
bool HasWord(std::string_view list, std::string_view word);

// A path of /proc/mounts or mountinfo, which have spaces and some other characters as "\040".
std::string UnescapedPath(std::string_view path);

// A line of /proc/<pid>/cgroup: "4:cpu,memory:/job" of version 1, "0::/job" of version 2.
struct CgroupLine {
  std::string_view controllers;  // empty: version 2
  std::string_view path;         // below the root of the hierarchy
};
// None: the line has another form.
std::optional<CgroupLine> ParseCgroupLine(std::string_view line);

}  // namespace persia::agent
