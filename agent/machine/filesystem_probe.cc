#include "machine/filesystem_probe.h"

#include <cerrno>
#include <utility>

namespace persia::agent {
namespace {

constexpr MachineFamily kSize{"persia_filesystem_size_bytes", MetricType::kGauge, "Size of the filesystem."};
constexpr MachineFamily kAvailable{"persia_filesystem_avail_bytes", MetricType::kGauge,
                                   "Free space of the filesystem for users without privileges."};
constexpr MachineFamily kFiles{"persia_filesystem_files", MetricType::kGauge,
                               "Limit on files (inodes) of the filesystem. Absent without a limit."};
constexpr MachineFamily kFilesFree{"persia_filesystem_files_free", MetricType::kGauge,
                                   "Files (inodes) that the filesystem has left. Absent without a limit."};
constexpr MachineFamily kError{"persia_filesystem_device_error", MetricType::kGauge,
                               "1 if the filesystem has answered with an error or not within 5 seconds, else 0."};

int CallStatvfs(const std::string& path, struct statvfs& info) { return statvfs(path.c_str(), &info) == 0 ? 0 : errno; }

// The directory is missing, or not accessible to the agent: that is no fault of the filesystem.
bool IsUnreachable(int error) { return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM; }

}  // namespace

FilesystemProbe::FilesystemProbe(std::string use, Statvfs call)
    : use_(std::move(use)), call_(call ? std::move(call) : CallStatvfs) {}

void FilesystemProbe::Ask(const std::string& path, TimePoint now) {
  const bool began = statvfs_.Start([path, call = call_, answer = answer_] {
    struct statvfs info {};
    const int error = call(path, info);
    const MutexLock lock(answer->mutex);
    answer->known = true;
    answer->error = error;
    answer->info = info;
  });
  if (began) {
    asked_ = now;
  } else if (!statvfs_.runs()) {
    const MutexLock lock(answer_->mutex);
    answer_->known = false;  // no thread: asked again next time
  }
}

void FilesystemProbe::Read(TimePoint now, MachineReading& reading) const {
  const Labels labels{{"use", use_}};
  const bool hangs = statvfs_.runs() && now - asked_ >= kDeadline;
  const MutexLock lock(answer_->mutex);
  if (!hangs && (!answer_->known || IsUnreachable(answer_->error))) return;
  reading.Add(kError, labels, hangs || answer_->error != 0 ? 1.0 : 0.0);
  if (hangs || answer_->error != 0) return;
  const struct statvfs info = answer_->info;
  const double block = static_cast<double>(info.f_frsize);
  reading.Add(kSize, labels, static_cast<double>(info.f_blocks) * block);
  reading.Add(kAvailable, labels, static_cast<double>(info.f_bavail) * block);
  if (info.f_files == 0) return;
  reading.Add(kFiles, labels, static_cast<double>(info.f_files));
  reading.Add(kFilesFree, labels, static_cast<double>(info.f_favail));
}

}  // namespace persia::agent
