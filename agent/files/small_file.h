// Reads a whole file of a bounded size: settings, a secret, a certificate, a report.
//
// Thread safety: a pure function.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

struct SmallFile {
  std::string content;
  struct stat info;  // read before the content
};

// Reads a regular file of at most `max_mib` MiB. A pipe, a device or a larger file is refused unread, so that it cannot
// hold up the agent.
// The error is meant to follow the file's name: "cannot be read: Permission denied", "is a directory", "is larger than 1 MiB".
// `expected` is appended if the file has the wrong type or size: "; expected a YAML file".
Result<SmallFile> ReadSmallFile(const std::string& path, std::string_view expected = "", size_t max_mib = 1);

}  // namespace persia::agent
