#include "files/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/owned_fd.h"

namespace persia::agent {

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

}  // namespace persia::agent
