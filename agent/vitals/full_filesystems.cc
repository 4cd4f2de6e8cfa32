// /proc/self/mountinfo has a line for each mount, in the order in which they were mounted: "35 31 0:32 / /dev/shm rw shared:4 -
// tmpfs shm rw": the third word is the device, the fifth the mount point; after " - " stands the type.
#include "vitals/full_filesystems.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "files/kernel_text.h"
#include "files/proc_reader.h"

namespace persia::agent {
namespace {

constexpr double kFull = 0.01;  // the highest free share of a full one
constexpr size_t kMostMounts = 64;

dev_t DeviceOf(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return 0;
  return makedev(static_cast<unsigned>(LeadingNumber(text).value_or(0)),
                 static_cast<unsigned>(LeadingNumber(text.substr(colon + 1)).value_or(0)));
}

// By mount point.
std::map<std::string, dev_t> MountsInMemory(std::string_view text) {
  std::map<std::string, dev_t> mounts;
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view type_on = line.substr(dash + 3);
    for (int word = 0; word < 2; ++word) NextWord(line);
    const dev_t device = DeviceOf(NextWord(line));
    NextWord(line);  // the directory that is mounted
    std::string point = UnescapedPath(NextWord(line));
    if (NextWord(type_on) != "tmpfs")
      mounts.erase(point);  // hidden
    else if (mounts.size() < kMostMounts || mounts.contains(point))
      mounts.insert_or_assign(std::move(point), device);
  }
  return mounts;
}

}  // namespace

FullFilesystems::FullFilesystems(std::string proc, FreeRatio free_ratio)
    : proc_(std::move(proc)), free_ratio_(std::move(free_ratio)) {}

double FullFilesystems::FreeRatioOf(const std::string& mount_point, dev_t device) {
  const OwnedFd directory(open(mount_point.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  // A mount further up may hide it.
  if (!directory.valid() || fstat(directory.get(), &info) != 0 || info.st_dev != device) return -1;
  struct statvfs space {};
  if (fstatvfs(directory.get(), &space) != 0 || space.f_blocks == 0 || (space.f_flag & ST_RDONLY) != 0) return -1;
  return static_cast<double>(space.f_bavail) / static_cast<double>(space.f_blocks);
}

void FullFilesystems::Ask() {
  call_.Start([proc = proc_, free_ratio = free_ratio_, answers = answers_] {
    ProcReader reader(proc);
    const std::map<std::string, dev_t> mounts = MountsInMemory(reader.Read("self", "/mountinfo"));
    for (const auto& [point, device] : mounts) {
      const double free = free_ratio(point, device);
      const MutexLock lock(answers->mutex);
      answers->is_full[point] = free >= 0 && free <= kFull;
    }
    const MutexLock lock(answers->mutex);
    std::erase_if(
        answers->is_full, [&](const auto& answer) { return !mounts.contains(answer.first); });
  });
}

std::vector<std::string> FullFilesystems::Find() const {
  std::vector<std::string> full;
  const MutexLock lock(answers_->mutex);
  for (const auto& [point, is_full] : answers_->is_full)
    if (is_full) full.push_back(point);
  return full;
}

}  // namespace persia::agent
