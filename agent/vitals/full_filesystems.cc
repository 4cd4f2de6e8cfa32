#include "vitals/full_filesystems.h"

#include <sys/statvfs.h>

#include <utility>

#include "files/kernel_text.h"

namespace persia::agent {
namespace {

constexpr double kFull = 0.01;  // the highest free share of a full one
constexpr size_t kMostMounts = 64;

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
    std::string_view line = NextLine(text);
    NextWord(line);  // the device
    const std::string_view point = NextWord(line);
    if (NextWord(line) != "tmpfs") continue;
    ++mounts;
    std::string path = UnescapedPath(point);
    const double free = free_ratio_(path);
    if (free >= 0 && free <= kFull) full.push_back(std::move(path));
  }
  return full;
}

}  // namespace persia::agent
