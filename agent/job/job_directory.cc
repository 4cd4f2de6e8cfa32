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
#include "lib/src/segment_format/job_directory.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxConfBytes = 65536;

Result<gid_t> FindGroup(const std::string& group) {
  gid_t gid = 0;
  if (ParseNumber(group, gid)) return gid;
  std::vector<char> buffer(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  if (getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return Error{"metrics_dir_group: there is no group " + Quoted(group) + " on this host"};
  }
  return found->gr_gid;
}

// The digits at the start of the file.
std::string ReadPid(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::string pid;
  for (ssize_t i = 0; i < size && IsDigit(text[i]); ++i) pid += text[i];
  return pid;
}

std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      components.push_back(path.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return components;
}

// Opens the directory `name` in `parent`; `path` is for errors. A link is followed only if root or this user owns it: any user
// can create one in /tmp or /dev/shm.
Result<OwnedFd> OpenComponent(int parent, const std::string& name, const std::string& path) {
  OwnedFd next(openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!next.valid() || fstat(next.get(), &info) != 0) return SystemError("cannot open " + path);
  if (S_ISLNK(info.st_mode)) {
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
      return Error{path + " is a symbolic link of another user (" + std::to_string(info.st_uid) + "); it is not followed"};
    }
    next = OwnedFd(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next.valid()) return SystemError("cannot open " + path);
    return next;
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error{path + " is not a directory"};
  }
  return next;
}

// The directory's name is on disk when it returns: without it, a power cut would lose all that is in the directory.
Status CreateDirectory(int parent, const std::string& name, const std::string& path) {
  if (mkdirat(parent, name.c_str(), 0700) == 0) {
    const OwnedFd readable(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (readable.valid()) fsync(readable.get());  // some filesystems do not support it
    return Done{};
  }
  if (errno == EEXIST) {
    return Done{};
  }
  const Error error = SystemError("cannot create the directory " + path);
  // On a read-only filesystem, mkdirat fails with EROFS even if the directory exists.
  const bool exists = faccessat(parent, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return exists ? Status(Done{}) : Status(error);
}

std::string OctalMode(const struct stat& info) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", info.st_mode & 07777U);
  return text;
}

// Opens the directory, and creates it and its parent if the options request it. No other directory is created: a typing error
// should not make a tree.
Result<OwnedFd> OpenPath(const JobDirectory::Options& options) {
  const std::vector<std::string> components = Components(options.path);
  if (components.empty()) {
    return Error{"metrics_dir: " + Quoted(options.path) + " cannot be a job's directory"};
  }
  OwnedFd parent(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string path;
  for (size_t left = components.size();; --left) {
    const std::string& name = components[components.size() - left];
    path += "/" + name;
    if (options.create && left <= 2) {
      if (Status created = CreateDirectory(parent.get(), name, path); !created.ok()) {
        return Error{created.error()};
      }
    }
    if (left == 1) {
      OwnedFd directory(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!directory.valid()) return SystemError("cannot open the directory " + options.path);
      return directory;
    }
    auto next = OpenComponent(parent.get(), name, path);
    if (!next.ok()) return next;
    parent = std::move(next).value();
    struct stat info {};
    if (options.private_parent && left == 2 &&
        (fstat(parent.get(), &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 0022) != 0)) {
      return Error{"the directory " + path + " belongs to another user (" + std::to_string(info.st_uid) + ", mode " +
                   OctalMode(info) + "); set metrics_dir to a directory of your own"};
    }
  }
}

// Opens or creates a file of the directory, for its owner or for the group, regardless of the umask.
OwnedFd OpenFile(int directory, const char* name, int flags, bool shared) {
  OwnedFd fd(openat(directory, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, shared ? 0660 : 0600));
  if (fd.valid() && shared) {
    fchmod(fd.get(), 0660);  // fails for another user's file, which has its mode already
  }
  return fd;
}

// REQUIRES: this user owns the directory.
Status ShareWithGroup(int fd, gid_t group, const std::string& path) {
  if (fchown(fd, static_cast<uid_t>(-1), group) != 0 || fchmod(fd, 02770) != 0) {
    return SystemError("cannot give " + path + " to group " + std::to_string(group));
  }
  return Done{};
}

}  // namespace

Result<JobDirectory> JobDirectory::Open(const Options& options) {
  JobDirectory directory;
  directory.options_ = options;
  directory.path_ = options.path;
  if (!options.group.empty()) {
    const auto group = FindGroup(options.group);
    if (!group.ok()) {
      return Error{group.error()};
    }
    directory.group_ = group.value();
  }
  auto opened = OpenPath(options);
  if (!opened.ok()) {
    return Error{opened.error()};
  }
  directory.directory_ = std::move(opened).value();
  struct stat info {};
  if (fstat(directory.fd(), &info) != 0) return SystemError("cannot stat the directory " + options.path);
  if (directory.group_ && info.st_uid == geteuid() && (info.st_gid != *directory.group_ || (info.st_mode & 02770) != 02770)) {
    if (Status shared = ShareWithGroup(directory.fd(), *directory.group_, options.path); !shared.ok()) {
      return Error{shared.error()};
    }
    if (fstat(directory.fd(), &info) != 0) return SystemError("cannot stat the directory " + options.path);
  }
  const bool shared = (info.st_mode & 02770) == 02770 && (info.st_mode & 0002) == 0;
  const bool ours = info.st_uid == geteuid() && (info.st_mode & 0022) == 0;
  if ((!ours && !shared) || (directory.group_ && info.st_gid != *directory.group_)) {
    return Error{"the directory " + options.path + " (owner " + std::to_string(info.st_uid) + ", group " +
                 std::to_string(info.st_gid) + ", mode " + OctalMode(info) + ") is neither this user's alone (owner " +
                 std::to_string(geteuid()) +
                 ", 0700) nor shared with a group (2770, metrics_dir_group); change that, or set metrics_dir to another"};
  }
  if (shared) {
    directory.group_ = info.st_gid;
  }
  return directory;
}

Result<JobDirectory> JobDirectory::OpenExisting(const std::string& path) { return Open({.path = path, .create = false}); }

std::optional<uint32_t> JobDirectory::LockHolder(const std::string& name) const {
  const OwnedFd fd(openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  uint32_t pid = 0;
  if (!fd.valid() || fcntl(fd.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return ParseNumber(std::string_view(ReadPid(fd.get())), pid) ? std::optional(pid) : std::nullopt;
}

Result<std::optional<std::string>> JobDirectory::Lock(const std::string& name) {
  OwnedFd fd = OpenFile(directory_.get(), name.c_str(), O_RDWR, group_.has_value());
  if (!fd.valid()) return SystemError("cannot open " + path_ + "/" + name);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return SystemError("cannot lock " + path_ + "/" + name);
    const std::string pid = ReadPid(fd.get());
    return std::optional<std::string>(pid.empty() ? "?" : pid);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return SystemError("cannot write " + path_ + "/" + name);
  }
  lock_ = std::move(fd);
  lock_name_ = name;
  return std::optional<std::string>();
}

bool JobDirectory::WasRemoved() const {
  struct stat ours {};
  struct stat there {};
  return stat(path_.c_str(), &there) != 0 || fstat(fd(), &ours) != 0 || there.st_dev != ours.st_dev ||
         there.st_ino != ours.st_ino;
}

Status JobDirectory::Recreate() {
  auto opened = Open(options_);
  if (!opened.ok()) {
    return Error{opened.error()};
  }
  JobDirectory& recreated = opened.value();
  const auto holder = recreated.Lock(lock_name_);
  if (!holder.ok()) {
    return Error{holder.error()};
  }
  if (holder.value()) {
    return Error{"the agent with pid " + *holder.value() + " holds the lock of the new directory " + path_};
  }
  if (dup3(recreated.fd(), fd(), O_CLOEXEC) < 0) return SystemError("cannot replace the descriptor of the directory " + path_);
  lock_ = std::move(recreated.lock_);
  group_ = recreated.group_;
  return Done{};
}

AgentConf JobDirectory::ReadConf() const {
  AgentConf conf;
  const OwnedFd fd(openat(directory_.get(), metrics::kAgentConfName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return conf;
  std::string text(kMaxConfBytes, '\0');
  const ssize_t size = read(fd.get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line == "enabled=0") {
      conf.enabled = false;
    } else if (line == "ended=1") {
      conf.ended = true;
    } else if (line.starts_with("run_id=") && CheckText(line.substr(7), "").ok()) {
      conf.run_id = line.substr(7);
    } else if (line.starts_with("job=")) {
      conf.job = line.substr(4);
    } else if (line.starts_with("starter=")) {
      conf.starter = line.substr(8);
    } else if (line.starts_with("command=")) {
      conf.command = line.substr(8);
    } else if (line.starts_with("web=")) {
      conf.web = line.substr(4);
    }
  }
  return conf;
}

Status JobDirectory::WriteConf(const AgentConf& conf) {
  std::string text = std::string("enabled=") + (conf.enabled ? "1" : "0") + "\nrun_id=" + conf.run_id + "\njob=" + conf.job +
                     (conf.ended ? "\nended=1\n" : "\n");
  if (!conf.starter.empty()) text += "starter=" + conf.starter + "\ncommand=" + conf.command + '\n';
  if (!conf.web.empty()) text += "web=" + conf.web + '\n';
  const DurableFile file{directory_.get(), path_, metrics::kAgentConfName};
  const auto written = ReplaceDurable(file, group_ ? 0660 : 0600, {text}, {});
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
