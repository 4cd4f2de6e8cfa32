// Small files: read whole, checked, watched for changes.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace persia::agent {

// CRC-32, to detect damaged files. The adapter of zlib's crc32.

// Of `bytes` after other bytes, whose checksum is `before`.
[[nodiscard]] uint32_t Checksum(std::string_view bytes, uint32_t before = 0);

// Reads a whole file of a bounded size: settings, a secret, a certificate, a report.
//
// Thread safety: a pure function.
struct SmallFile {
  std::string content;
  struct stat info;  // read before the content
};

// Reads a regular file of at most `max_mib` MiB. A pipe, a device or a larger file is refused unread, so that it cannot
// hold up the agent.
// The error is meant to follow the file's name: "cannot be read: Permission denied", "is a directory", "is larger than 1 MiB".
// `expected` is appended if the file has the wrong type or size: "; expected a YAML file".
Result<SmallFile> ReadSmallFile(const std::string& path, std::string_view expected = "", size_t max_mib = 1);

// A small file that is read repeatedly and may change at run time: a token, a password, a certificate.
//
//   WatchedFile token("bearer token file", "/run/secrets/token");
//   Result<std::string> text = token.Read();   // from memory while the file is unchanged
//
// The file is unchanged while its device, inode, size, mtime and ctime are: a token that a kubelet replaces by renaming a link
// is read again, and so is one that is overwritten. Errors name the file and never quote its content. Thread safety: none; one
// per user.
class WatchedFile {
 public:
  // `what` is for errors: "bearer token file".
  WatchedFile(std::string what, std::string path) : what_(std::move(what)), path_(std::move(path)) {}

  // The whole content. An error if the file is missing, empty, not a regular file, or larger than 1 MiB.
  Result<std::string> Read();
  // The content without surrounding whitespace and a byte order mark, for a secret. An error if it has more than one line.
  Result<std::string> ReadLine();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] Error Fail(const std::string& why) const;

  const std::string what_;
  const std::string path_;
  std::optional<struct stat> seen_;
  std::string content_;
};

}  // namespace persia::agent
