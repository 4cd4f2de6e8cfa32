#include "job/named_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/owned_fd.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr size_t kReadBytes = 1 << 16;
// The requested capacity: writers may write this much while the agent is busy. The kernel may allow less.
constexpr int kPipeBytes = 1 << 20;
// Many times the capacity of a pipe.
constexpr size_t kMaxDrainedBytes = 64 << 20;

// The owner of a pipe could read lines of this job.
int OpenPipe(const std::string& path, int flags, std::optional<gid_t> group, std::string& distrust) {
  return metrics::OpenTrustedFile(AT_FDCWD, path, flags, {.type = S_IFIFO, .group = group}, distrust);
}

}  // namespace

Result<std::unique_ptr<NamedPipe>> NamedPipe::Open(Options options) {
  const std::string& path = options.path;
  const std::string name = "named pipe \"" + path + "\": ";
  if (std::filesystem::path(path).parent_path() == kClientDirectory) {
    // As /tmp: it stays, and the next job's user may be another. If it cannot be created, the pipe cannot.
    if (mkdir(kClientDirectory, 0700) == 0) chmod(kClientDirectory, 01777);
  }
  const bool created = mkfifo(path.c_str(), 0600) == 0;
  if (!created && errno != EEXIST) return SystemError(name + "cannot be created");
  if (created) chmod(path.c_str(), 0600);  // regardless of the umask
  // For writing as well: without a writer, poll() would report a hang-up of a pipe that is only read again and again.
  std::string distrust;
  OwnedFd fd(OpenPipe(path, O_RDWR, options.group, distrust));
  if (!distrust.empty()) {
    return Error{name + distrust +
                 "; remove it, configure another path or, to trust a pipe's group, set metrics_dir_group to it"};
  }
  if (!fd.valid()) return SystemError(name + "cannot be opened");
  if (created && options.group &&
      (fchown(fd.get(), static_cast<uid_t>(-1), *options.group) != 0 || fchmod(fd.get(), 0620) != 0)) {
    const Error error = SystemError(name + "cannot be given to group " + std::to_string(*options.group));
    unlink(path.c_str());
    return error;
  }
  static_cast<void>(fcntl(fd.get(), F_SETPIPE_SZ, kPipeBytes));
  const bool removes = created || options.remove;
  return std::unique_ptr<NamedPipe>(new NamedPipe(std::move(options), std::move(fd), removes));
}

bool NamedPipe::HasReader(const std::string& path, std::optional<gid_t> group) {
  std::string distrust;
  return OwnedFd(OpenPipe(path, O_WRONLY, group, distrust)).valid();
}

NamedPipe::NamedPipe(Options options, OwnedFd fd, bool removes)
    : options_(std::move(options)), fd_(std::move(fd)), removes_(removes) {}

NamedPipe::~NamedPipe() {
  struct stat ours {};
  struct stat there {};
  if (removes_ && fstat(fd(), &ours) == 0 && lstat(options_.path.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
      ours.st_ino == there.st_ino)
    unlink(options_.path.c_str());
}

bool NamedPipe::Read(const OnLine& on_line) {
  if (buffer_.size() < used_ + kReadBytes + options_.padding) buffer_.resize(used_ + kReadBytes + options_.padding);
  ssize_t got = 0;
  do {
    got = read(fd(), buffer_.data() + used_, kReadBytes);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  const char* begin = buffer_.data();
  const char* const end = begin + used_ + got;
  const char* search = begin + used_;
  while (const auto* newline = static_cast<const char*>(std::memchr(search, '\n', static_cast<size_t>(end - search)))) {
    const auto size = static_cast<size_t>(newline - begin);
    if (skipping_)
      skipping_ = false;
    else if (size > options_.max_line_bytes)
      on_line({});
    else if (size > 0)
      on_line({begin, size});
    begin = search = newline + 1;
  }
  used_ = static_cast<size_t>(end - begin);
  if (skipping_ || used_ > options_.max_line_bytes) {
    if (!skipping_) on_line({});
    skipping_ = true;
    used_ = 0;
  }
  std::memmove(buffer_.data(), begin, used_);
  return true;
}

void NamedPipe::Drain(const OnLine& on_line) {
  // Bounded, since a writer may never stop.
  for (size_t left = kMaxDrainedBytes / kReadBytes; left > 0 && Read(on_line); --left) {
  }
  if (used_ > 0) {
    on_line({buffer_.data(), used_});
    used_ = 0;
  }
}

}  // namespace persia::agent
