#include "vitals/full_filesystems.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

constexpr double kFull = 0.01;  // at most so much is free
constexpr size_t kMostMounts = 64;

// A field of /proc/mounts has blanks as octal numbers.
std::string Unescaped(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

std::string_view TakeWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

FullFilesystems::FullFilesystems(std::string proc, std::function<double(const std::string&)> free_ratio)
    : proc_(std::move(proc)), free_ratio_(std::move(free_ratio)) {}

double FullFilesystems::FreeRatio(const std::string& mount_point) {
  struct statvfs space {};
  if (statvfs(mount_point.c_str(), &space) != 0 || space.f_blocks == 0 || (space.f_flag & ST_RDONLY) != 0) return -1;
  return static_cast<double>(space.f_bavail) / static_cast<double>(space.f_blocks);
}

std::vector<std::string> FullFilesystems::Find() {
  std::vector<std::string> full;
  std::string_view text = proc_.Read("self", "/mounts");
  size_t mounts = 0;
  while (!text.empty() && mounts < kMostMounts) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    TakeWord(line);
    const std::string_view point = TakeWord(line);
    const std::string_view type = TakeWord(line);
    if (type != "tmpfs") continue;
    ++mounts;
    std::string path = Unescaped(point);
    const double free = free_ratio_(path);
    if (free >= 0 && free <= kFull) full.push_back(std::move(path));
  }
  return full;
}

}  // namespace persia::agent
