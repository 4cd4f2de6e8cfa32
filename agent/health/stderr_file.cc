#include "health/stderr_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "base/text.h"
#include "kernel/kernel_text.h"

namespace persia::agent {

std::optional<StderrFile> StderrFile::Of(ProcReader& proc, const std::string& pid) {
  StderrFile file;
  file.path_ = proc.Link(pid, "/fd/2");
  // "pipe:[4711]" is no file, nor is "/dev/null" or "/dev/pts/0".
  if (!file.path_.starts_with('/')) return std::nullopt;
  if (file.path_.starts_with("/dev/") && !file.path_.starts_with("/dev/shm/")) return std::nullopt;
  file.inode_ = NumberOf(proc.Read(pid, "/fdinfo/2"), "ino");
  return file;
}

std::vector<std::string> StderrFile::LastLines(size_t count) const {
  const OwnedFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  // Another file may have its name now. An overlay may have other inodes than it tells.
  struct statfs filesystem {};
  const bool tells_inodes = fstatfs(fd.get(), &filesystem) == 0 && filesystem.f_type != OVERLAYFS_SUPER_MAGIC;
  if (inode_ && *inode_ != info.st_ino && tells_inodes) return {};
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
