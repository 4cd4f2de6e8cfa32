#include "machine/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <memory>

#include "base/owned_fd.h"

namespace persia::agent {
namespace {

constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kMaxBytes = 4 << 20;

}  // namespace

std::string_view KernelFiles::Read(std::string_view path) {
  // A path that is no file of the kernel, such as a pipe of a test, must not block.
  const OwnedFd file(open(PathOf(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return {};
  size_t size = 0;
  for (;;) {
    if (size == buffer_.size()) {
      if (size >= kMaxBytes) break;
      buffer_.resize(std::max(kFirstBytes, 2 * size));
    }
    const ssize_t got = read(file.get(), buffer_.data() + size, buffer_.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {buffer_.data(), size};
}

std::optional<uint64_t> KernelFiles::Number(std::string_view path) { return LeadingNumber(Read(path)); }

std::vector<std::string> KernelFiles::List(std::string_view path) const {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(PathOf(path).c_str()), closedir);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

bool KernelFiles::Exists(std::string_view path) const { return access(PathOf(path).c_str(), F_OK) == 0; }

std::string KernelFiles::Link(std::string_view path) const {
  char target[PATH_MAX];
  const ssize_t size = readlink(PathOf(path).c_str(), target, sizeof target);
  return size > 0 && size < static_cast<ssize_t>(sizeof target) ? std::string(target, static_cast<size_t>(size)) : "";
}

std::optional<uint64_t> KernelFiles::Inode(std::string_view path) const {
  struct stat info {};
  return stat(PathOf(path).c_str(), &info) == 0 ? std::optional<uint64_t>(info.st_ino) : std::nullopt;
}

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

}  // namespace persia::agent
