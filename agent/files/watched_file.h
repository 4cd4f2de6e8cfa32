// A small file that is read repeatedly and may change at run time: a token, a password, a certificate.
//
//   WatchedFile token("bearer token file", "/run/secrets/token");
//   Result<std::string> text = token.Read();   // from memory while the file is unchanged
//
// The file is unchanged while its device, inode, size, mtime and ctime are: a token that a kubelet replaces by renaming a link
// is read again, and so is one that is overwritten. Errors name the file and never quote its content. Thread safety: none; one
// per user.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace persia::agent {

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
