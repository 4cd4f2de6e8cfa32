#include "vitals/stack_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/owned_fd.h"
#include "base/text.h"

namespace persia::agent {
namespace {

constexpr std::string_view kHeader = "persia-metrics stacks 1 signal ";
constexpr size_t kMaxFileBytes = 256 << 10;

// 0: the header is another one.
int SignalIn(std::string_view content) {
  if (!content.starts_with(kHeader)) return 0;
  content.remove_prefix(kHeader.size());
  int signal = 0;
  const std::string_view number = content.substr(0, content.find('\n'));
  return ParseNumber(number, signal) && signal > 0 && signal < NSIG ? signal : 0;
}

// Whether a signal's number is in SigCgt of /proc/<pid>/status, a bit mask in hexadecimal digits.
bool Catches(std::string_view status, int signal) {
  std::string_view mask = ProcLine(status, "SigCgt:");
  while (mask.starts_with('\t') || mask.starts_with(' ')) mask.remove_prefix(1);
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return error == std::errc() && (bits >> (signal - 1) & 1) != 0;
}

}  // namespace

StackFiles::StackFiles(std::string directory) : directory_(std::move(directory)) {}

std::string StackFiles::NameOf(uint32_t pid, uint64_t start_ticks) const {
  return directory_ + "/" + std::to_string(pid) + "-" + std::to_string(start_ticks) + ".stacks";
}

std::string StackFiles::Content(uint32_t pid, uint64_t start_ticks) const {
  const OwnedFd fd(open(NameOf(pid, start_ticks).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid()) return "";
  std::string content(std::min<size_t>(static_cast<size_t>(info.st_size), kMaxFileBytes), '\0');
  const ssize_t size = pread(fd.get(), content.data(), content.size(), 0);
  content.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return content;
}

bool StackFiles::Ask(uint32_t pid, uint64_t start_ticks) {
  const int signal = SignalIn(Content(pid, start_ticks));
  if (signal == 0) return false;
  const std::string name = std::to_string(pid);
  const OwnedFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // The start time is read after the process was opened: it is that of the process that gets the signal.
  const auto stat = process.valid() ? proc_.Stat(name) : std::nullopt;
  if (!stat || stat->start_ticks != start_ticks || !Catches(proc_.Read(name, "/status"), signal)) return false;
  return syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

std::string StackFiles::Read(uint32_t pid, uint64_t start_ticks) {
  const std::string content = Content(pid, start_ticks);
  if (SignalIn(content) == 0) return "";
  std::string_view text(content);
  text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  std::string lines;
  while (!text.empty() && lines.size() < kMaxBytes) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += OneLine(text.substr(0, std::min(end, kMaxBytes - lines.size()))) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void StackFiles::Remove(uint32_t pid, uint64_t start_ticks) { unlink(NameOf(pid, start_ticks).c_str()); }

}  // namespace persia::agent
