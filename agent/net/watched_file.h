// A small file whose content is wanted again and again and may be replaced under way: a token, a password, a certificate.
//
//   WatchedFile token("bearer token file", "/run/secrets/token");
//   Result<std::string> text = token.Read();   // from memory while the file is the same
//
// The file is the same while device, inode, size and times of change are: a token that a kubelet swaps by renaming a link, and
// one that somebody writes over, are both seen at the next Read. Errors name the file and never quote its content.
// Thread safety: none; one per user.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "model/result.h"

namespace persia::agent {

class WatchedFile {
 public:
  static constexpr size_t kLargest = 1 << 20;

  // `what` names it in errors: "bearer token file".
  WatchedFile(std::string what, std::string path) : what_(std::move(what)), path_(std::move(path)) {}

  // The whole content. A file that is missing, empty, no regular file or larger than a megabyte is an error.
  Result<std::string> Read();
  // Its first line, without blanks around it: how a secret stands in a file. More lines than one are an error.
  Result<std::string> ReadLine();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Result<std::string> ReadAnew();
  [[nodiscard]] Error Fail(const std::string& why) const;

  const std::string what_;
  const std::string path_;
  std::optional<struct stat> seen_;
  std::string content_;
};

}  // namespace persia::agent
