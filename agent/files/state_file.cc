// The file: 8 bytes of magic, uint32 version, uint32 CRC-32 of the payload, uint64 size of the payload, the payload. Numbers
// are little-endian.
#include "files/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/owned_fd.h"
#include "files/bytes.h"
#include "files/checksum.h"

namespace persia::agent {
namespace {

constexpr size_t kHeaderBytes = 24;
constexpr size_t kMaxFileBytes = 1ULL << 30;  // a larger file is not an agent's state and would exhaust its memory
constexpr int kMaxBrokenFiles = 1000;

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

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

Result<std::optional<std::string>> StateFile::Read(std::string& set_aside) {
  set_aside.clear();
  std::string broken;
  auto payload = Look(broken);
  if (!broken.empty()) {
    set_aside = SetAside(broken);
    if (faccessat(options_.directory_fd, options_.name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      return Error{std::exchange(set_aside, {})};  // still there: the next Write would replace it
    }
  }
  return payload;
}

Result<std::optional<std::string>> StateFile::Look(std::string& why_broken) const {
  why_broken.clear();
  const OwnedFd fd(
      openat(options_.directory_fd, options_.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && errno == ENOENT) return std::optional<std::string>();
  const auto broken = [&](std::string_view why) {
    why_broken = why;
    return std::optional<std::string>();
  };
  if (!fd.valid() && errno == ELOOP) return broken("it is a symbolic link, which is not followed");
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return SystemError("cannot read " + path());
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size > kMaxFileBytes) {
    return broken(S_ISREG(info.st_mode) ? "it is larger than any state of an agent" : "it is not a regular file");
  }
  std::string bytes(size, '\0');
  if (!ReadAll(fd.get(), bytes)) return SystemError("cannot read " + path());
  ByteReader header(std::string_view(bytes).substr(0, kHeaderBytes));
  const bool magic = std::string_view(bytes).starts_with(std::string_view(options_.magic.data(), options_.magic.size()));
  header.U64();
  const uint32_t version = header.U32();
  const uint32_t checksum = header.U32();
  const uint64_t payload_size = header.U64();
  if (!magic) return broken("it does not begin as an agent's state does");
  if (header.ok() && version != options_.version) {
    return broken("it has version " + std::to_string(version) + ", this agent reads version " +
                  std::to_string(options_.version));
  }
  if (!header.ok() || payload_size != bytes.size() - kHeaderBytes) {
    return broken("it has " + std::to_string(bytes.size()) + " bytes, which is not what its header says");
  }
  bytes.erase(0, kHeaderBytes);
  if (Checksum(bytes) != checksum) return broken("its checksum does not match its content");
  return std::optional<std::string>(std::move(bytes));
}

Status StateFile::Write(std::string_view payload) {
  if (payload.size() > kMaxFileBytes - kHeaderBytes) {
    return Error{"cannot write " + path() + ": " + std::to_string(payload.size()) +
                 " bytes are more than the maximum of 1 GiB"};
  }
  const std::string draft = options_.name + ".draft";
  unlinkat(options_.directory_fd, draft.c_str(), 0);  // left by an agent that was killed during Write
  const OwnedFd fd(
      openat(options_.directory_fd, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, options_.mode));
  if (!fd.valid()) return SystemError("cannot write " + path());
  const auto fail = [&] {
    const Error error = SystemError("cannot write " + path());
    unlinkat(options_.directory_fd, draft.c_str(), 0);
    return error;
  };
  Step("draft made");
  ByteWriter header;
  for (const char c : options_.magic) header.U8(static_cast<uint8_t>(c));
  header.U32(options_.version);
  header.U32(Checksum(payload));
  header.U64(payload.size());
  if (fchmod(fd.get(), options_.mode) != 0 || !WriteAll(fd.get(), std::move(header).Take()) || !WriteAll(fd.get(), payload)) {
    return fail();
  }
  Step("draft written");
  // Before the rename: after a power cut there must not be a new name on an empty file.
  if (fdatasync(fd.get()) != 0) return fail();
  Step("draft on disk");
  if (renameat(options_.directory_fd, draft.c_str(), options_.directory_fd, options_.name.c_str()) != 0) return fail();
  fsync(options_.directory_fd);  // some filesystems do not support it
  Step("renamed");
  return Done{};
}

std::string StateFile::SetAside(std::string_view why) {
  const std::string message = path() + " cannot be used: " + std::string(why);
  for (int n = 1; n <= kMaxBrokenFiles; ++n) {
    const std::string name = options_.name + ".broken-" + std::to_string(n);
    if (renameat2(options_.directory_fd, options_.name.c_str(), options_.directory_fd, name.c_str(), RENAME_NOREPLACE) == 0) {
      return message + "; it is kept as " + options_.directory + "/" + name;
    }
    if (errno != EEXIST) break;
  }
  return SystemError(message + ", and it cannot be renamed").message;
}

Status StateFile::Remove() {
  if (unlinkat(options_.directory_fd, options_.name.c_str(), 0) != 0 && errno != ENOENT) {
    return SystemError("cannot remove " + path());
  }
  return Done{};
}

}  // namespace persia::agent
