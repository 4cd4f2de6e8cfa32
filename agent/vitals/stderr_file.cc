#include "vitals/stderr_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "base/text.h"

namespace persia::agent {

std::optional<StderrFile> StderrFile::Of(const std::string& proc, const std::string& pid) {
  const std::string link = proc + "/" + pid + "/fd/2";
  struct stat info {};
  char path[PATH_MAX];
  if (stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  const ssize_t size = readlink(link.c_str(), path, sizeof path);
  if (size <= 0) return std::nullopt;
  StderrFile file;
  file.path_.assign(path, static_cast<size_t>(size));
  file.device_ = info.st_dev;
  file.inode_ = info.st_ino;
  return file;
}

std::vector<std::string> StderrFile::LastLines(size_t count) const {
  const OwnedFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  // Another file may have its name now.
  const bool is_same =
      fd.valid() && fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_dev == device_ && info.st_ino == inode_;
  if (!is_same) return {};
  const off_t begin = std::max<off_t>(0, info.st_size - static_cast<off_t>(kMaxBytes));
  std::string content(kMaxBytes, '\0');
  const ssize_t size = pread(fd.get(), content.data(), content.size(), begin);
  std::string_view text(content.data(), size > 0 ? static_cast<size_t>(size) : 0);
  // Progress bars rewrite their line.
  constexpr std::string_view kEnds = "\r\n";
  std::vector<std::string> lines;
  while (lines.size() < count) {
    while (!text.empty() && kEnds.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    if (text.empty()) break;
    const size_t end_before = text.find_last_of(kEnds);
    std::string_view line = end_before == std::string_view::npos ? text : text.substr(end_before + 1);
    if (end_before == std::string_view::npos && begin > 0) break;  // it may begin before the part that was read
    text.remove_suffix(line.size());
    lines.push_back(OneLine(line.substr(0, kMaxLineBytes)));
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace persia::agent
