#include "health/stack_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/owned_fd.h"
#include "base/text.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr std::string_view kHeader = "persia-metrics stacks 1 signal ";
constexpr std::string_view kCrash = "Fatal Python error: ";  // the first line that Python's faulthandler writes in a crash
constexpr std::string_view kCurrentThread = "Current thread 0x";
constexpr std::string_view kThread = "Thread 0x";
constexpr std::string_view kLeftOut = "...\n";
constexpr std::string_view kSuffix = ".stacks";
constexpr std::string_view kSegmentSuffix = ".seg";
constexpr size_t kMaxHeaderBytes = 64;
constexpr size_t kMaxTextBytes = 1 << 20;  // faulthandler writes at most 100 threads of 100 calls

std::string ReadAt(int fd, size_t begin, size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// The first line, with its end.
std::string Header(int fd) {
  std::string header = ReadAt(fd, 0, kMaxHeaderBytes);
  header.resize(header.find('\n') + 1);
  return header;
}

// 0: the header is another one.
int SignalIn(std::string_view header) {
  if (!header.starts_with(kHeader)) return 0;
  header.remove_prefix(kHeader.size());
  int signal = 0;
  const std::string_view number = header.substr(0, header.find('\n'));
  return ParseNumber(number, signal) && signal > 0 && signal < NSIG ? signal : 0;
}

// The first lines of a part, in at most about `limit` bytes.
std::string Cut(std::string_view part, size_t limit) {
  if (part.size() <= limit) return std::string(part);
  const size_t end = part.substr(0, limit).rfind('\n');
  // One long line may be cut in a character.
  return (end == std::string_view::npos ? OneLine(part.substr(0, limit)) + "\n" : std::string(part.substr(0, end + 1))) +
         std::string(kLeftOut);
}

// Empty lines separate the title of a crash, the threads, the newest first, and the list of modules.
std::string Shorten(std::string_view text) {
  if (text.size() <= StackFiles::kMaxBytes) return std::string(text);
  std::vector<std::string_view> parts;
  size_t current = 0;
  size_t main = 0;
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    const std::string_view part = end == std::string_view::npos ? text : text.substr(0, end + 2);
    text.remove_prefix(part.size());
    if (part.starts_with(kCurrentThread)) current = parts.size();
    if (part.starts_with(kCurrentThread) || part.starts_with(kThread)) main = parts.size();
    parts.push_back(part);
  }
  std::vector<size_t> order{current, main};
  order.insert(parts.front().starts_with(kThread) ? order.end() : order.begin(), 0);  // the title, which is short
  for (size_t i = 0; i < parts.size(); ++i) order.push_back(i);
  std::vector<std::string> kept(parts.size());
  size_t left = StackFiles::kMaxBytes;
  for (size_t i = 0; i < order.size() && left > 0; ++i) {
    std::string& part = kept[order[i]];
    if (!part.empty()) continue;
    part = Cut(parts[order[i]], i < 2 ? std::min(left, StackFiles::kMaxBytes / 2) : left);
    left -= std::min(left, part.size());
  }
  std::string lines;
  for (const std::string& part : kept)
    if (!part.empty())
      lines += part;
    else if (!lines.ends_with(kLeftOut))
      lines += kLeftOut;
  return lines;
}

}  // namespace

StackFiles::StackFiles(std::string directory) : directory_(std::move(directory)) {}

std::string StackFiles::NameOf(const ProcessId& process) const {
  return directory_ + "/" + std::to_string(process.pid) + "-" + std::to_string(process.start_ticks) + std::string(kSuffix);
}

OwnedFd StackFiles::Open(const ProcessId& process, int flags) const {
  std::string distrust;
  return OwnedFd(metrics::OpenTrustedFile(AT_FDCWD, NameOf(process), flags, {}, distrust));
}

bool StackFiles::Ask(const ProcessId& process) {
  const OwnedFd file = Open(process, O_RDWR);
  const std::string header = file.valid() ? Header(file.get()) : "";
  const int signal = SignalIn(header);
  if (signal == 0) return false;
  const std::string name = std::to_string(process.pid);
  const OwnedFd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  // The start time is read after the process was opened: it is that of the process that gets the signal.
  const auto stat = fd.valid() ? proc_.Stat(name) : std::nullopt;
  if (!stat || stat->start_ticks != process.start_ticks || !proc_.Catches(name, signal)) return false;
  return ftruncate(file.get(), static_cast<off_t>(header.size())) == 0 &&
         syscall(SYS_pidfd_send_signal, fd.get(), signal, nullptr, 0) == 0;
}

std::string StackFiles::Read(const ProcessId& process) {
  const OwnedFd file = Open(process, O_RDONLY);
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return "";
  const std::string header = Header(file.get());
  if (SignalIn(header) == 0) return "";
  const size_t size = std::max(static_cast<size_t>(info.st_size), header.size());
  const size_t bytes = std::min(size - header.size(), kMaxTextBytes);
  const std::string content = ReadAt(file.get(), size - bytes, bytes);
  std::string_view text(content);
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (text.starts_with(kCrash)) lines.clear();  // nothing follows a crash
    lines += OneLine(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Shorten(lines);
}

bool StackFiles::Lives(const ProcessId& process) {
  const auto stat = proc_.Stat(std::to_string(process.pid));
  return stat && stat->start_ticks == process.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

void StackFiles::Remove(const ProcessId& process) {
  if (!Lives(process)) unlink(NameOf(process).c_str());
}

void StackFiles::RemoveOrphans() {
  std::set<uint32_t> with_segment;
  std::vector<ProcessId> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const std::string_view text(name);
    const size_t dash = std::min(text.find('-'), text.size());
    ProcessId process;
    if (!ParseNumber(text.substr(0, dash), process.pid)) continue;
    if (text.ends_with(kSegmentSuffix))
      with_segment.insert(process.pid);  // its end will be told
    else if (text.ends_with(kSuffix) &&
             ParseNumber(text.substr(dash + 1, text.size() - kSuffix.size() - dash - 1), process.start_ticks))
      found.push_back(process);
  }
  for (const ProcessId& process : found)
    if (!with_segment.contains(process.pid)) Remove(process);
}

}  // namespace persia::agent
