// Opens a queue that a former agent may have left. A queue is a directory of files `<number>.queue`, in the order of their
// numbers; queue_file.cc has their format.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "remote/disk_queue.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

using Found = QueueFile::Found;

constexpr std::string_view kSuffix = ".queue";
constexpr size_t kDigits = 12;

std::string NameOf(uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits + std::string(kSuffix);
}

// 0: no name of a queue's file.
uint64_t NumberOf(std::string_view name) {
  uint64_t number = 0;
  return name.size() == kDigits + kSuffix.size() && ParseNumber(name.substr(0, kDigits), number) && name.ends_with(kSuffix)
             ? number
             : 0;
}

}  // namespace

Result<std::unique_ptr<DiskQueue>> DiskQueue::Open(Options options) {
  std::unique_ptr<DiskQueue> queue(new DiskQueue(std::move(options)));
  const MutexLock lock(queue->mutex_);
  if (Status status = queue->OpenDirectory(); !status.ok()) return Error{status.error()};
  if (Status status = queue->ReadDirectory(); !status.ok()) return Error{status.error()};
  return queue;
}

Status DiskQueue::OpenDirectory() {
  // A user who may write the files may also create some.
  const mode_t mode = options_.mode | (options_.mode >> 2 & 0111);
  if (mkdirat(options_.directory_fd, options_.name.c_str(), mode) == 0)
    fchmodat(options_.directory_fd, options_.name.c_str(), mode, 0);  // regardless of the umask
  else if (errno != EEXIST)
    return SystemError("cannot create " + path());
  OwnedFd fd(openat(options_.directory_fd, options_.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return SystemError("cannot open " + path());
  metrics::FileTrust trust = metrics::TrustIn(options_.directory_fd);
  trust.type = S_IFDIR;
  trust.may_have_names = true;  // of its directories, too
  if (const std::string distrust = metrics::DistrustOf(info, trust); !distrust.empty())
    return Error{path() + " " + distrust + "; remove it"};
  directory_ = std::move(fd);
  return Done{};
}

// An incomplete list would be worse than none: a new file would replace an existing one.
Status DiskQueue::ReadDirectory() {
  std::vector<uint64_t> numbers;
  DIR* const directory = fdopendir(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  errno = directory == nullptr ? errno : 0;
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (const uint64_t number = NumberOf(name); number > 0)
      numbers.push_back(number);
    else if (name.ends_with(kSuffix))
      LogWarning("remote.queue", path() + "/" + std::string(name) + " is not a file name of a disk queue; it is ignored");
    errno = 0;  // the log may have set it
  }
  const int error = errno;
  if (directory != nullptr) closedir(directory);
  if (error != 0) return SystemError("cannot list " + path(), error);
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    next_number_ = number + 1;
    File file;
    std::string why;
    const Found found = Scan(number, file, why);
    if (found == Found::kTryLater) ReadLater(number, file);
    if (found != Found::kNo) files_[number] = std::move(file);
  }
  RemoveDone();
  return Done{};
}

// Counts the pending requests in a file of a former agent. kNo: there are none, and the file is gone or set aside. kTryLater:
// `why`, and `file` is unchanged.
Found DiskQueue::Scan(uint64_t number, File& file, std::string& why) {
  const QueueFile::Place place = PlaceOf(number);
  Found found{};
  const auto opened = QueueFile::Open(place, found);
  if (!opened.ok()) {
    why = opened.error();
    if (found == Found::kNo) SetAside(number, why, 0);
    return found;
  }
  QueueFile& content = *opened.value();
  File scanned;
  uint64_t at = QueueFile::kFileHeaderBytes;
  uint64_t skipped = 0;
  QueueRecord record;
  const int64_t max_ms = now_ms() + kMaxClockLeadMs;
  while ((found = content.Next(at, content.size(), record, skipped)) == Found::kYes) {
    at = record.end();
    if (!record.done) scanned.pending.Add(record);
    if (!content.has_header()) continue;
    scanned.newest_ms = std::max(scanned.newest_ms, record.timestamp_ms);
    generation_ = std::max(generation_, record.generation);
    if (record.timestamp_ms <= max_ms) NoteTimestamp(record.timestamp_ms);
  }
  if (found == Found::kTryLater) {
    why = SystemError("cannot read " + place.path()).message;
    return found;
  }
  if (!content.has_header()) {
    SetAside(number, place.path() + " does not begin as a disk queue of this version does", scanned.pending.samples);
    return Found::kNo;
  }
  const bool is_damaged = content.HasDamagedHeaderAt(at);
  if (at == QueueFile::kFileHeaderBytes) {
    if (is_damaged || (content.begins_with_zeros() && at < content.size()))
      SetAside(number, place.path() + " has no whole record", 0);
    else
      unlinkat(directory_.get(), place.name.c_str(), 0);
    return Found::kNo;
  }
  if (is_damaged) CountDamage(place.path() + ": its last record is damaged");
  if (at < content.size()) content.CutAt(at);
  scanned.bytes = content.size();
  file = std::move(scanned);
  return Found::kYes;
}

void DiskQueue::SetAside(uint64_t number, const std::string& why, uint64_t samples) {
  const std::string name = PlaceOf(number).name;
  const std::string aside = name + ".broken";
  const bool is_renamed = renameat(directory_.get(), name.c_str(), directory_.get(), aside.c_str()) == 0;
  ++corrupt_places_;
  dropped_samples_["corrupt"] += samples;
  LogWarning("remote.queue", why + (samples > 0 ? "; " + std::to_string(samples) + " samples in it are lost" : "") +
                                 (is_renamed ? "; it is renamed to " + aside : ""));
}

// Its size and age are known without reading, so the limits apply to it meanwhile. Its generations are not, so new ones begin
// at a number that none of them can have, the seconds since 1970: otherwise a series that changed shards could be overtaken.
void DiskQueue::ReadLater(uint64_t number, File& file) {
  file.is_unread = true;
  file.newest_ms = now_ms();
  generation_ = std::max(generation_, static_cast<uint32_t>(file.newest_ms / 1000));
  struct stat info {};
  if (fstatat(directory_.get(), PlaceOf(number).name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    file.newest_ms = info.st_mtim.tv_sec * 1000;
    file.bytes = std::min(static_cast<uint64_t>(info.st_size), QueueFile::kMaxFileBytes);
  }
}

QueueFile::Place DiskQueue::PlaceOf(uint64_t number) const {
  return {.directory_fd = directory_.get(), .directory = path(), .name = NameOf(number)};
}

}  // namespace persia::agent
