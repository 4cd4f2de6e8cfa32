#include "files/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr int kMaxBrokenFiles = 1000;

// False: see errno.
bool ReadAll(int fd, std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) {
      bytes.resize(at);  // the file has become shorter
      return true;
    }
    at += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

Result<std::optional<std::string>> ReadDurable(const DurableFile& file, std::string& broken) {
  broken.clear();
  std::string distrust;
  const metrics::FileTrust trust = metrics::TrustIn(file.directory_fd);
  const OwnedFd fd(metrics::OpenTrustedFile(file.directory_fd, file.name, O_RDONLY, trust, distrust));
  struct stat info {};
  if (!distrust.empty()) broken = "it " + distrust;
  if (!broken.empty() || (!fd.valid() && errno == ENOENT)) return std::optional<std::string>();
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return SystemError("cannot read " + file.path());
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > file.max_bytes) {
    broken = "it is larger than any state of an agent";
    return std::optional<std::string>();
  }
  std::string bytes(size, '\0');
  if (!ReadAll(fd.get(), bytes)) return SystemError("cannot read " + file.path());
  return std::optional<std::string>(std::move(bytes));
}

Result<OwnedFd> ReplaceDurable(const DurableFile& file, mode_t mode, std::string_view bytes,
                               const std::function<void(std::string_view step)>& after_step) {
  const auto step = [&](std::string_view name) {
    if (after_step) after_step(name);
  };
  if (bytes.size() > kMaxStateBytes) {
    return Error{"cannot write " + file.path() + ": " + std::to_string(bytes.size()) +
                 " bytes are more than the maximum of 1 GiB"};
  }
  const std::string draft = file.name + kDraftSuffix;
  unlinkat(file.directory_fd, draft.c_str(), 0);  // left by an agent that was killed meanwhile
  OwnedFd fd(openat(file.directory_fd, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return SystemError("cannot write " + file.path());
  const auto fail = [&] {
    const Error error = SystemError("cannot write " + file.path());
    unlinkat(file.directory_fd, draft.c_str(), 0);
    return error;
  };
  step("draft made");
  if (fchmod(fd.get(), mode) != 0 || !WriteAll(fd.get(), bytes)) return fail();
  step("draft written");
  // Before the rename: after a power cut there must not be a new name on an empty file.
  if (file.is_flushed && fdatasync(fd.get()) != 0) return fail();
  step("draft on disk");
  if (renameat(file.directory_fd, draft.c_str(), file.directory_fd, file.name.c_str()) != 0) return fail();
  if (file.is_flushed) fsync(file.directory_fd);  // some filesystems do not support it
  step("renamed");
  return fd;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool SetAsideDurable(const DurableFile& file, std::string_view why, std::string& message) {
  message = file.path() + " cannot be used: " + std::string(why);
  for (int n = 1; n <= kMaxBrokenFiles; ++n) {
    const std::string name = file.name + ".broken-" + std::to_string(n);
    if (renameat2(file.directory_fd, file.name.c_str(), file.directory_fd, name.c_str(), RENAME_NOREPLACE) == 0) {
      fsync(file.directory_fd);  // before a new file of this name: that must not replace this one
      message += "; it is kept as " + file.directory + "/" + name;
      return true;
    }
    if (errno != EEXIST) break;
  }
  const bool gone = errno == ENOENT;
  message = SystemError(message + ", and it cannot be renamed").message;
  return gone;
}

Status RemoveDurable(const DurableFile& file) {
  if (unlinkat(file.directory_fd, file.name.c_str(), 0) != 0 && errno != ENOENT)
    return SystemError("cannot remove " + file.path());
  fsync(file.directory_fd);  // some filesystems do not support it
  return Done{};
}

}  // namespace persia::agent
