#include "kernel/full_filesystems.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "kernel/kernel_text.h"
#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

constexpr double kFull = 0.01;  // the highest free share of a full one
constexpr size_t kMostMounts = 64;

// By mount point. The file has the mounts in their order in time.
std::map<std::string, dev_t> MountsInMemory(std::string_view text) {
  std::map<std::string, dev_t> mounts;
  while (!text.empty()) {
    std::optional<MountLine> mount = ParseMountLine(NextLine(text));
    if (!mount) continue;
    if (mount->type != "tmpfs")
      mounts.erase(mount->point);  // hidden
    else if (mounts.size() < kMostMounts || mounts.contains(mount->point))
      mounts.insert_or_assign(std::move(mount->point), mount->device);
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
      if (free >= 0 && free <= kFull)
        answers->full.insert(point);
      else
        answers->full.erase(point);
    }
    const MutexLock lock(answers->mutex);
    std::erase_if(
        answers->full, [&](const std::string& point) { return !mounts.contains(point); });
  });
}

std::set<std::string> FullFilesystems::Find() const {
  const MutexLock lock(answers_->mutex);
  return answers_->full;
}

}  // namespace persia::agent
