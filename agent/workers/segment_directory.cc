#include "workers/segment_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/result.h"
#include "segment_format.h"

namespace persia::agent {
namespace {

// Two changes of a directory within one step of the filesystem's clock leave the same time, the second one maybe after a
// listing.
constexpr std::chrono::milliseconds kClockStep(500);

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

OwnedFd DiskSegmentDirectory::OpenDirectory() const {
  return OwnedFd(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

SegmentDirectory::Listing DiskSegmentDirectory::List() {
  Listing listing;
  OwnedFd fd = OpenDirectory();
  const std::unique_ptr<DIR, CloseDirectory> directory(fd.valid() ? fdopendir(fd.get()) : nullptr);
  if (directory == nullptr) {
    // The directory may not exist before the first worker does.
    if (errno != ENOENT) listing.error = SystemError("cannot read the directory " + path_).message;
    return listing;
  }
  fd.Release();
  // Before its names are read, so that a change meanwhile is found by the next look at it.
  struct stat self {};
  const FileId former = listed_;
  if (fstat(dirfd(directory.get()), &self) == 0) listed_ = {self.st_dev, self.st_ino, self.st_ctim};
  const TimePoint now = now_();
  is_settled_ = listed_.Same(former) && now - listed_at_ >= kClockStep;
  if (!listed_.Same(former)) listed_at_ = now;
  errno = 0;
  listing.complete = true;
  while (const dirent* entry = readdir(directory.get())) {
    if (!std::string_view(entry->d_name).ends_with(persia::metrics::segment::kFileSuffix)) continue;
    struct stat info {};
    if (fstatat(dirfd(directory.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      listing.files.push_back({entry->d_name, {info.st_dev, info.st_ino, info.st_ctim}});
    } else if (errno != ENOENT) {
      listing.complete = false;
    }  // else it was removed since readdir
    errno = 0;
  }
  listing.complete = listing.complete && errno == 0;
  std::sort(listing.files.begin(), listing.files.end(), [](const File& a, const File& b) { return a.name < b.name; });
  return listing;
}

bool DiskSegmentDirectory::IsUnchanged() {
  struct stat self {};
  return is_settled_ && lstat(path_.c_str(), &self) == 0 && listed_.Same({self.st_dev, self.st_ino, self.st_ctim});
}

std::unique_ptr<SegmentReader> DiskSegmentDirectory::Open(const std::string& name, const SegmentAccess& access,
                                                          SegmentProblem& problem) {
  const OwnedFd fd = OpenDirectory();
  if (!fd.valid()) {
    problem = {.reason = "access",
               .text = SystemError("cannot open the directory " + path_).message,
               .is_shortage = errno == EMFILE || errno == ENFILE};
    return nullptr;
  }
  return SegmentReader::Open(fd.get(), name.c_str(), access, problem);
}

SegmentDirectory::Removal DiskSegmentDirectory::Remove(const std::string& name, const FileId& file) {
  const auto not_removed = [] { return errno == ENOENT ? Removal::kGone : Removal::kFailed; };
  const OwnedFd fd = OpenDirectory();
  if (!fd.valid()) return not_removed();
  struct stat info {};
  if (fstatat(fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return not_removed();
  if (!file.SameInode({info.st_dev, info.st_ino, info.st_ctim})) return Removal::kGone;
  return unlinkat(fd.get(), name.c_str(), 0) == 0 ? Removal::kRemoved : not_removed();
}

bool DiskSegmentDirectory::SyncRemovals() {
  const OwnedFd fd = OpenDirectory();
  // A directory that is gone has no files. Some filesystems do not support it.
  return fd.valid() ? fsync(fd.get()) == 0 || errno == EINVAL : errno == ENOENT;
}

}  // namespace persia::agent
