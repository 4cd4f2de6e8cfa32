#include "kernel/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "base/owned_fd.h"
#include "kernel/kernel_text.h"

namespace persia::agent {
namespace {

constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kMaxBytes = 16 << 20;

}  // namespace

const std::string& KernelFiles::PathOf(std::string_view path, std::string_view more) {
  return path_.assign(root_).append(path).append(more);
}

std::string_view KernelFiles::Read(std::string_view path, std::string_view more) {
  const OwnedFd file(open(PathOf(path, more).c_str(), O_RDONLY | O_CLOEXEC));
  size_t size = 0;
  while (file.valid()) {
    if (size == buffer_.size()) {
      if (size >= kMaxBytes) break;
      buffer_.resize(std::max(kFirstBytes, 2 * size));
    }
    const ssize_t got = read(file.get(), buffer_.data() + size, buffer_.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {buffer_.data(), size};
}

std::optional<uint64_t> KernelFiles::Number(std::string_view path) { return LeadingNumber(Read(path)); }

std::vector<std::string> KernelFiles::List(std::string_view path, std::string_view more) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(PathOf(path, more).c_str()), closedir);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

bool KernelFiles::Exists(std::string_view path) { return access(PathOf(path).c_str(), F_OK) == 0; }

std::string KernelFiles::Link(std::string_view path, std::string_view more) {
  char target[PATH_MAX];
  const ssize_t size = readlink(PathOf(path, more).c_str(), target, sizeof target);
  return size > 0 && size < static_cast<ssize_t>(sizeof target) ? std::string(target, static_cast<size_t>(size)) : "";
}

std::optional<uint64_t> KernelFiles::Inode(std::string_view path, std::string_view more) {
  struct stat info {};
  return stat(PathOf(path, more).c_str(), &info) == 0 ? std::optional<uint64_t>(info.st_ino) : std::nullopt;
}

}  // namespace persia::agent
