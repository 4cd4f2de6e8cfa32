#include "files/small_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"

namespace persia::agent {

uint32_t Checksum(std::string_view bytes, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<SmallFile> ReadSmallFile(const std::string& path, std::string_view expected, size_t max_mib) {
  const auto unexpected = [&](const std::string& what) { return Error{what + std::string(expected)}; };
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  SmallFile file{};
  if (!fd.valid() || fstat(fd.get(), &file.info) != 0) return SystemError("cannot be read");
  if (!S_ISREG(file.info.st_mode)) return unexpected(S_ISDIR(file.info.st_mode) ? "is a directory" : "is not a regular file");
  char buffer[16384];
  for (;;) {
    if (std::max(file.content.size(), static_cast<size_t>(file.info.st_size)) > max_mib << 20)
      return unexpected("is larger than " + std::to_string(max_mib) + " MiB");
    const ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemError("cannot be read");
    if (size == 0) return file;
    file.content.append(buffer, static_cast<size_t>(size));
  }
}

namespace {

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

Error WatchedFile::Fail(const std::string& why) const { return Error{what_ + " \"" + path_ + "\": " + why}; }

Result<std::string> WatchedFile::Read() {
  struct stat now {};
  if (seen_ && stat(path_.c_str(), &now) == 0 && SameFile(*seen_, now)) return content_;
  seen_.reset();
  Result<SmallFile> file = ReadSmallFile(path_);
  if (!file.ok()) return Fail(file.error());
  if (file.value().content.empty()) return Fail("is empty");
  seen_ = file.value().info;
  content_ = std::move(file.value().content);
  return content_;
}

Result<std::string> WatchedFile::ReadLine() {
  Result<std::string> text = Read();
  if (!text.ok()) return text;
  static constexpr char kWhitespace[] = " \t\r\n";
  static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // editors of Windows put it in front
  std::string_view content = text.value();
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  const size_t begin = content.find_first_not_of(kWhitespace);
  if (begin == std::string::npos) return Fail("is empty");
  std::string line(content.substr(begin, content.find_last_not_of(kWhitespace) + 1 - begin));
  for (const char c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      return Fail("holds more than one line, or control characters; one line with the secret is expected");
  return line;
}

}  // namespace persia::agent
