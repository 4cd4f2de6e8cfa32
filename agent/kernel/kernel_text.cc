#include "kernel/kernel_text.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>

namespace persia::agent {
namespace {

// These files have spaces and some other characters of a path as "\040".
std::string UnescapedPath(std::string_view path) {
  std::string plain;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 3 < path.size()) {
      plain += static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + (path[i + 3] - '0'));
      i += 3;
    } else {
      plain += path[i];
    }
  }
  return plain;
}

// "0:32"
dev_t DeviceOf(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return 0;
  return makedev(static_cast<unsigned>(LeadingNumber(text).value_or(0)),
                 static_cast<unsigned>(LeadingNumber(text.substr(colon + 1)).value_or(0)));
}

}  // namespace

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::string_view NextWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

std::string_view NextLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::optional<uint64_t> NumberOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (line.starts_with(' ') || line.starts_with('\t')) return LeadingNumber(line);
  }
  return std::nullopt;
}

std::optional<MountLine> ParseMountLine(std::string_view line) {
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view filesystem = line.substr(dash + 3);
  for (int id = 0; id < 2; ++id) NextWord(line);
  MountLine mount{
      .device = DeviceOf(NextWord(line)), .root = UnescapedPath(NextWord(line)), .point = UnescapedPath(NextWord(line))};
  mount.type = NextWord(filesystem);
  NextWord(filesystem);  // its source
  mount.options = NextWord(filesystem);
  return mount;
}

}  // namespace persia::agent
