// /proc/<pid>/stat is "pid (comm) state ppid ...": comm may hold spaces and brackets, so fields are counted from the last ')'.
// /proc/<pid>/schedstat is "<ns on a processor> <ns on a run queue> <times>", of the main thread.
// /proc/<pid>/io has lines "read_bytes: 4096" and "write_bytes: 8192".
// /proc/<pid>/statm is "virtual resident ...", in pages.
// /proc/<pid>/status has "SigCgt:", a bit mask of signals in hexadecimal digits.
// /proc/<pid>/limits has lines "Max open files  <soft>  <hard>  files".
// /proc/stat has a line "btime <seconds since 1970>".
#include "kernel/proc_reader.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

#include "base/owned_fd.h"
#include "kernel/kernel_text.h"

namespace persia::agent {
namespace {

// Fields of /proc/<pid>/stat, counted from 1 as in proc(5).
constexpr size_t kFlags = 9;
constexpr size_t kMinorFaults = 10;
constexpr size_t kMajorFaults = 12;
constexpr size_t kUserTime = 14;
constexpr size_t kSystemTime = 15;
constexpr size_t kThreads = 20;
constexpr size_t kStarted = 22;
constexpr size_t kDiskWait = 42;
constexpr size_t kFirstField = 4;  // after the state
constexpr uint64_t kExiting = 4;   // of the flags: PF_EXITING of the kernel

double TicksPerSecond() {
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ticks;
}

}  // namespace

ProcReader::ProcReader(const std::string& proc) : KernelFiles(proc + "/") {
  // Since Linux 6.2 the size of a process's fd directory is its number of entries; before, it is 0. On other filesystems it
  // means nothing.
  struct statfs filesystem {};
  struct stat info {};
  size_is_count_ = statfs(proc.c_str(), &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC &&
                   stat(PathOf("self", "/fd").c_str(), &info) == 0 && info.st_size > 0;
  // Without delay accounting, as by default since Linux 5.14, the field is 0. Before, there is no such file.
  counts_disk_wait_ = !Read("sys/kernel/task_delayacct").starts_with('0');
}

std::optional<ProcStat> ProcReader::Stat(std::string_view who) {
  std::string_view rest = stat_ = Read(who, "/stat");
  const size_t comm_end = rest.rfind(')');
  if (comm_end == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(comm_end + 1);
  const std::string_view state = NextWord(rest);
  if (state.empty()) return std::nullopt;
  uint64_t fields[kDiskWait + 1] = {};
  for (size_t field = kFirstField; field <= kDiskWait; ++field) {
    const auto number = LeadingNumber(NextWord(rest));  // others are negative
    const bool wanted = field == kUserTime || field == kSystemTime || field == kThreads || field == kStarted;
    if (wanted && !number) return std::nullopt;
    fields[field] = number.value_or(0);
  }
  return ProcStat{
      .cpu_seconds = static_cast<double>(fields[kUserTime] + fields[kSystemTime]) / TicksPerSecond(),
      .threads = fields[kThreads],
      .start_ticks = fields[kStarted],
      .minor_faults = fields[kMinorFaults],
      .major_faults = fields[kMajorFaults],
      .disk_wait_seconds =
          counts_disk_wait_ ? std::optional(static_cast<double>(fields[kDiskWait]) / TicksPerSecond()) : std::nullopt,
      .exits = (fields[kFlags] & kExiting) != 0 || state[0] == 'Z' || state[0] == 'X',
      .state = state[0],
  };
}

std::optional<int> ProcReader::WaitStatusOfZombie(std::string_view who, uint64_t start_ticks) {
  const auto stat = Stat(who);
  if (!stat || stat->start_ticks != start_ticks || stat->state != 'Z') return std::nullopt;
  // The last field. To a reader without permission it is 0.
  std::string_view rest = stat_;
  while (rest.ends_with('\n') || rest.ends_with(' ')) rest.remove_suffix(1);
  const auto status = LeadingNumber(rest.substr(rest.rfind(' ') + 1));
  return status && *status != 0 ? std::optional(static_cast<int>(*status)) : std::nullopt;
}

std::optional<ProcMemory> ProcReader::Memory(std::string_view who) {
  static const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::string_view text = Read(who, "/statm");
  const auto virtual_pages = LeadingNumber(NextWord(text));
  const auto resident_pages = LeadingNumber(NextWord(text));
  if (!virtual_pages || !resident_pages) return std::nullopt;
  if (*virtual_pages == 0) {
    if (const std::string other = OtherThreadOf(who); !other.empty()) return Memory(other);
  }
  return ProcMemory{static_cast<double>(*virtual_pages) * page, static_cast<double>(*resident_pages) * page};
}

std::optional<double> ProcReader::RunQueueWait(std::string_view who) {
  std::string_view text = Read(who, "/schedstat");
  NextWord(text);
  const auto wait = LeadingNumber(NextWord(text));
  return wait ? std::optional(static_cast<double>(*wait) / 1e9) : std::nullopt;
}

std::optional<ProcIo> ProcReader::Io(std::string_view who) {
  const std::string_view text = Read(who, "/io");
  const auto read = NumberOf(text, "read_bytes");
  const auto written = NumberOf(text, "write_bytes");
  return read && written ? std::optional(ProcIo{*read, *written}) : std::nullopt;
}

ProcLimits ProcReader::Limits(std::string_view who) {
  const std::string_view text = Read(who, "/limits");
  return {.cpu_seconds = NumberOf(text, "Max cpu time"),
          .file_bytes = NumberOf(text, "Max file size"),
          .open_files = NumberOf(text, "Max open files"),
          .address_space = NumberOf(text, "Max address space")};
}

bool ProcReader::Catches(std::string_view who, int signal) {
  const std::string_view text = Read(who, "/status");
  constexpr std::string_view kMask = "\nSigCgt:\t";
  const size_t at = text.find(kMask);
  if (at == std::string_view::npos) return false;
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data() + at + kMask.size(), text.data() + text.size(), bits, 16);
  return error == std::errc() && (bits >> (signal - 1) & 1) != 0;
}

std::optional<uint64_t> ProcReader::OpenFds(std::string_view who) {
  const auto count = CountFds(who);
  if (count.value_or(0) > 0) return count;
  const std::string other = OtherThreadOf(who);
  return other.empty() ? count : CountFds(other);
}

std::string ProcReader::OtherThreadOf(std::string_view who) {
  for (const std::string& thread : List(who, "/task"))
    if (thread != who) return std::string(who) + "/task/" + thread;
  return "";
}

std::optional<uint64_t> ProcReader::CountFds(std::string_view who) {
  struct stat info {};
  if (size_is_count_ && stat(PathOf(who, "/fd").c_str(), &info) == 0 && info.st_size > 0)
    return static_cast<uint64_t>(info.st_size);
  const OwnedFd directory(open(PathOf(who, "/fd").c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  if (!directory.valid()) return std::nullopt;
  // readdir would allocate a buffer for each process. An entry of getdents64(2): 16 bytes, its length (2 bytes), its type (1
  // byte), its name.
  constexpr size_t kLengthAt = 16;
  constexpr size_t kNameAt = 19;
  char entries[16 << 10];
  uint64_t count = 0;
  for (;;) {
    const long got = syscall(SYS_getdents64, directory.get(), entries, sizeof entries);
    if (got <= 0) break;
    for (size_t at = 0; at + kNameAt < static_cast<size_t>(got);) {
      uint16_t length = 0;
      std::memcpy(&length, entries + at + kLengthAt, sizeof length);
      count += entries[at + kNameAt] != '.' ? 1 : 0;
      at += std::max<size_t>(length, kNameAt);
    }
  }
  // Of the own process, `directory` is one of the counted descriptors.
  return who == "self" && count > 0 ? count - 1 : count;
}

bool ProcReader::IsInNamespace(std::string_view who, uint64_t pid_namespace) {
  if (pid_namespace == 0) return false;
  const std::optional<uint64_t> there = PidNamespace(who);
  return (there ? there : PidNamespace("self")) == pid_namespace;
}

std::optional<double> ProcReader::UnixTime(uint64_t start_ticks) {
  const auto booted = NumberOf(Read("stat"), "btime");
  return booted ? std::optional(static_cast<double>(*booted) + static_cast<double>(start_ticks) / TicksPerSecond())
                : std::nullopt;
}

}  // namespace persia::agent
