#include "job/job_directory.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "files/durable_file.h"
#include "lib/src/directory/trusted_directory.h"
#include "lib/src/segment_format/job_directory.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxConfBytes = 65536;
constexpr char kLockName[] = "agent.lock";
constexpr char kOthersName[] = "agent.execs";

// A length of 0: up to the end.
struct flock LockOf(short type, off_t begin = 0, off_t length = 0) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = length;
  return lock;
}

// Whether another open file of it has a lock in these bytes.
bool IsLocked(const OwnedFd& fd, off_t begin, off_t length) {
  struct flock lock = LockOf(F_WRLCK, begin, length);
  return fd.valid() && fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Whether the name in the directory leads to the open file.
bool IsAtName(int fd, int directory, const std::string& name) {
  struct stat ours {};
  struct stat there {};
  return fstat(fd, &ours) == 0 && fstatat(directory, name.c_str(), &there, 0) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino;
}

// The digits at the start of the file.
std::string ReadPid(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::string pid;
  for (ssize_t i = 0; i < size && IsDigit(text[i]); ++i) pid += text[i];
  return pid;
}

// Not valid: it is not there, or not trusted.
OwnedFd OpenForReading(int directory, const std::string& name) {
  std::string distrust;
  return OwnedFd(metrics::OpenTrustedFile(directory, name, O_RDONLY, metrics::TrustIn(directory), distrust));
}

// Opens or creates a file of the directory, for its owner or for the group, regardless of the umask.
Result<OwnedFd> OpenFile(int directory, const std::string& name, const std::string& path, bool shared) {
  std::string distrust;
  const mode_t mode = shared ? 0660 : 0600;
  OwnedFd fd(metrics::OpenTrustedFile(directory, name, O_RDWR | O_CREAT, metrics::TrustIn(directory), distrust, mode));
  if (!distrust.empty()) return Error{path + " " + distrust + "; remove it"};
  if (!fd.valid()) return SystemError("cannot open " + path);
  fchmod(fd.get(), mode);  // fails for another user's file, which has its mode already
  return fd;
}

// REQUIRES: this user owns the directory.
Status ShareWithGroup(int fd, gid_t group, const std::string& path) {
  if (fchown(fd, static_cast<uid_t>(-1), group) != 0 || fchmod(fd, 02770) != 0)
    return SystemError("cannot give " + path + " to group " + std::to_string(group));
  return Done{};
}

}  // namespace

Result<std::optional<gid_t>> FindGroup(const std::string& group) {
  if (group.empty()) return std::optional<gid_t>();
  gid_t gid = 0;
  if (ParseNumber(group, gid)) return std::optional(gid);
  std::vector<char> buffer(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  if (getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return Error{"metrics_dir_group: there is no group " + Quoted(group) + " on this host"};
  return std::optional(found->gr_gid);
}

Result<JobDirectory> JobDirectory::Open(const Options& options) {
  JobDirectory directory;
  directory.options_ = options;
  directory.path_ = options.path;
  const auto group = FindGroup(options.group);
  if (!group.ok()) return Error{group.error()};
  directory.group_ = group.value();
  const metrics::TrustedDirectory wanted{.path = options.path, .group = directory.group_, .create = options.create};
  std::string error;
  directory.directory_ = OwnedFd(metrics::OpenDirectoryPath(wanted, error));
  if (!directory.directory_.valid()) return Error{error};
  struct stat info {};
  if (fstat(directory.fd(), &info) != 0) return SystemError("cannot stat the directory " + options.path);
  if (options.create && directory.group_ && info.st_uid == geteuid() &&
      (info.st_gid != *directory.group_ || (info.st_mode & 02770) != 02770)) {
    if (Status shared = ShareWithGroup(directory.fd(), *directory.group_, options.path); !shared.ok())
      return Error{shared.error()};
    if (fstat(directory.fd(), &info) != 0) return SystemError("cannot stat the directory " + options.path);
  }
  if (std::string distrust = metrics::DistrustOf(info, wanted); !distrust.empty()) return Error{std::move(distrust)};
  if (metrics::IsShared(info.st_mode)) directory.group_ = info.st_gid;
  return directory;
}

Result<JobDirectory> JobDirectory::OpenExisting(const std::string& path, const std::string& group) {
  return Open({.path = path, .group = group, .create = false});
}

std::optional<LockHolder> JobDirectory::Holder() const {
  const OwnedFd fd = OpenForReading(directory_.get(), kLockName);
  LockHolder holder;
  struct flock lock = LockOf(F_WRLCK, 0, 1);
  if (!fd.valid() || fcntl(fd.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  holder.collects = lock.l_type == F_RDLCK;
  char text[64];
  const ssize_t size = pread(fd.get(), text, sizeof text, 0);
  const std::string_view words(text, size > 0 ? static_cast<size_t>(size) : 0);
  static_cast<void>(ParseNumber(words.substr(0, words.find('\n')), holder.pid));
  return holder;
}

Result<std::string> JobDirectory::FileOfOthers() {
  const std::string path = path_ + "/" + kOthersName;
  const auto opened = OpenFile(directory_.get(), kOthersName, path, group_.has_value());
  return opened.ok() ? Result<std::string>(path) : Error{opened.error()};
}

bool JobDirectory::HasOthers(uint64_t own_place) const {
  const OwnedFd fd = OpenForReading(directory_.get(), kOthersName);
  const auto place = static_cast<off_t>(own_place);
  return (place > 0 && IsLocked(fd, 0, place)) || IsLocked(fd, place + 1, 0);
}

void JobDirectory::NoteCollecting(bool collects) {
  collects_ = collects;
  struct flock lock = LockOf(collects ? F_RDLCK : F_WRLCK, 0, 1);
  static_cast<void>(fcntl(lock_.get(), F_OFD_SETLK, &lock));  // no other one can have locked the byte
}

Result<std::optional<std::string>> JobDirectory::Lock(const std::string& name) {
  auto opened = OpenFile(directory_.get(), name, path_ + "/" + name, group_.has_value());
  if (!opened.ok()) return Error{opened.error()};
  OwnedFd fd = std::move(opened).value();
  struct flock lock = LockOf(F_WRLCK);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return SystemError("cannot lock " + path_ + "/" + name);
    const std::string pid = ReadPid(fd.get());
    return std::optional<std::string>(pid.empty() ? "?" : pid);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return SystemError("cannot write " + path_ + "/" + name);
  lock_ = std::move(fd);
  lock_name_ = name;
  return std::optional<std::string>();
}

bool JobDirectory::WasRemoved() const {
  return !IsAtName(fd(), AT_FDCWD, path_) || (lock_.valid() && !IsAtName(lock_.get(), fd(), lock_name_));
}

Status JobDirectory::Recreate() {
  auto opened = Open(options_);
  if (!opened.ok()) return Error{opened.error()};
  JobDirectory& recreated = opened.value();
  const auto holder = recreated.Lock(lock_name_);
  if (!holder.ok()) return Error{holder.error()};
  if (holder.value()) return Error{"the agent with pid " + *holder.value() + " holds the lock of the new directory " + path_};
  if (dup3(recreated.fd(), fd(), O_CLOEXEC) < 0) return SystemError("cannot replace the descriptor of the directory " + path_);
  lock_ = std::move(recreated.lock_);
  if (collects_) NoteCollecting(true);
  group_ = recreated.group_;
  return Done{};
}

AgentConf JobDirectory::ReadConf() const {
  AgentConf conf;
  const OwnedFd fd = OpenForReading(directory_.get(), metrics::kAgentConfName);
  if (!fd.valid()) return conf;
  std::string text(kMaxConfBytes, '\0');
  const ssize_t size = read(fd.get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line == "enabled=0")
      conf.enabled = false;
    else if (line == "ended=1")
      conf.ended = true;
    else if (line.starts_with("run_id=") && CheckText(line.substr(7), "").ok())
      conf.run_id = line.substr(7);
    else if (line.starts_with("job="))
      conf.job = line.substr(4);
    else if (line.starts_with("starter="))
      conf.starter = line.substr(8);
    else if (line.starts_with("command="))
      conf.command = line.substr(8);
    else if (line.starts_with("web="))
      conf.web = line.substr(4);
    else if (int replica = 0; line.starts_with("state_replica=") && ParseNumber(line.substr(14), replica) && replica >= 0)
      conf.state_replica = replica;
    else if (int attempt = 0; line.starts_with("attempt=") && ParseNumber(line.substr(8), attempt) && attempt > 0)
      conf.attempt = attempt;
    else if (int64_t began = 0; line.starts_with("run_began=") && ParseNumber(line.substr(10), began) && began > 0)
      conf.run_began = began;
  }
  return conf;
}

Status JobDirectory::WriteConf(const AgentConf& conf) {
  std::string text = std::string("enabled=") + (conf.enabled ? "1" : "0") + "\nrun_id=" + conf.run_id + "\njob=" + conf.job +
                     (conf.ended ? "\nended=1\n" : "\n");
  if (!conf.starter.empty()) text += "starter=" + conf.starter + "\ncommand=" + conf.command + '\n';
  if (!conf.web.empty()) text += "web=" + conf.web + '\n';
  if (conf.state_replica) text += "state_replica=" + std::to_string(*conf.state_replica) + '\n';
  if (conf.attempt > 0) text += "attempt=" + std::to_string(conf.attempt) + '\n';
  if (conf.run_began > 0) text += "run_began=" + std::to_string(conf.run_began) + '\n';
  const DurableFile file{directory_.get(), path_, metrics::kAgentConfName};
  const auto written = ReplaceDurable(file, group_ ? 0660 : 0600, text, {});
  if (!written.ok()) return Error{written.error()};
  return Done{};
}

std::optional<std::string> DiskFilesystemOf(long type) {
  switch (type) {
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case XFS_SUPER_MAGIC:
      return "xfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case F2FS_SUPER_MAGIC:
      return "f2fs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlayfs";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> JobDirectory::DiskFilesystem() const {
  struct statfs filesystem {};
  if (fstatfs(directory_.get(), &filesystem) != 0) return std::nullopt;
  return DiskFilesystemOf(static_cast<long>(filesystem.f_type));
}

std::string MakeRunId() {
  unsigned char bytes[8] = {};
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    const int64_t now = std::chrono::system_clock::now().time_since_epoch().count() ^ getpid();
    std::memcpy(bytes, &now, sizeof bytes);
  }
  std::string id;
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    id += digits;
  }
  return id;
}

}  // namespace persia::agent
