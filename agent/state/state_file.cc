// The file: 8 bytes of magic, uint32 version, uint32 CRC-32 of the payload, uint64 size of the payload, the payload. Numbers
// are little-endian.
#include "state/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "state/bytes.h"
#include "state/checksum.h"

namespace persia::agent {
namespace {

constexpr size_t kHeaderBytes = 24;
constexpr size_t kLargestFile = 1ULL << 30;  // more is no state of ours, and would take the agent's memory
constexpr int kMostSetAside = 1000;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  const int fd_;
};

Error Because(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// False: see errno.
bool ReadAll(int fd, std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return false;
    }
    if (n == 0) {
      bytes.resize(at);  // somebody shortened it meanwhile
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
  const Fd fd(openat(options_.directory_fd, options_.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && errno == ENOENT) {
    return std::optional<std::string>();
  }
  const auto broken = [&](std::string_view why) {
    why_broken = why;
    return std::optional<std::string>();
  };
  if (!fd.valid() && errno == ELOOP) {
    return broken("it is a symbolic link, which is not followed");
  }
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return Because("cannot read " + path());
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size > kLargestFile) {
    return broken(S_ISREG(info.st_mode) ? "it is larger than any state of an agent" : "it is not a regular file");
  }
  std::string bytes(size, '\0');
  if (!ReadAll(fd.get(), bytes)) {
    return Because("cannot read " + path());
  }
  ByteReader header(std::string_view(bytes).substr(0, kHeaderBytes));
  const bool magic = std::string_view(bytes).starts_with(std::string_view(options_.magic.data(), options_.magic.size()));
  header.U64();
  const uint32_t version = header.U32();
  const uint32_t checksum = header.U32();
  const uint64_t payload_size = header.U64();
  if (!magic) {
    return broken("it does not begin as an agent's state does");
  }
  if (header.ok() && version != options_.version) {
    return broken("it has version " + std::to_string(version) + ", this agent reads version " +
                  std::to_string(options_.version));
  }
  if (!header.ok() || payload_size != bytes.size() - kHeaderBytes) {
    return broken("it has " + std::to_string(bytes.size()) + " bytes, which is not what its header says");
  }
  bytes.erase(0, kHeaderBytes);
  if (Checksum(bytes) != checksum) {
    return broken("its checksum does not match its content");
  }
  return std::optional<std::string>(std::move(bytes));
}

Status StateFile::Write(std::string_view payload) {
  if (payload.size() > kLargestFile - kHeaderBytes) {
    return Error{"cannot write " + path() + ": " + std::to_string(payload.size()) + " bytes are more than a state may have"};
  }
  const std::string draft = options_.name + ".draft";
  unlinkat(options_.directory_fd, draft.c_str(), 0);  // of an agent that was killed while it wrote
  const Fd fd(
      openat(options_.directory_fd, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, options_.mode));
  if (!fd.valid()) {
    return Because("cannot write " + path());
  }
  const auto fail = [&] {
    const Error error = Because("cannot write " + path());
    unlinkat(options_.directory_fd, draft.c_str(), 0);
    return error;
  };
  Step("draft made");
  ByteWriter header;
  for (const char c : options_.magic) {
    header.U8(static_cast<uint8_t>(c));
  }
  header.U32(options_.version);
  header.U32(Checksum(payload));
  header.U64(payload.size());
  if (fchmod(fd.get(), options_.mode) != 0 || !WriteAll(fd.get(), std::move(header).Take()) || !WriteAll(fd.get(), payload)) {
    return fail();
  }
  Step("draft written");
  // Before the rename: after a power cut there must not be a new name on an empty file.
  if (fdatasync(fd.get()) != 0) {
    return fail();
  }
  Step("draft on disk");
  if (renameat(options_.directory_fd, draft.c_str(), options_.directory_fd, options_.name.c_str()) != 0) {
    return fail();
  }
  fsync(options_.directory_fd);  // a filesystem that cannot do this has no order to keep
  Step("renamed");
  return Done{};
}

std::string StateFile::SetAside(std::string_view why) {
  const std::string said = path() + " cannot be used: " + std::string(why);
  for (int n = 1; n <= kMostSetAside; ++n) {
    const std::string name = options_.name + ".broken-" + std::to_string(n);
    if (renameat2(options_.directory_fd, options_.name.c_str(), options_.directory_fd, name.c_str(), RENAME_NOREPLACE) == 0) {
      return said + "; it is kept as " + options_.directory + "/" + name;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  return said + ", and it cannot be renamed: " + std::strerror(errno);
}

Status StateFile::Remove() {
  if (unlinkat(options_.directory_fd, options_.name.c_str(), 0) != 0 && errno != ENOENT) {
    return Because("cannot remove " + path());
  }
  return Done{};
}

}  // namespace persia::agent
