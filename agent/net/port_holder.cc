// A line of /proc/net/tcp and tcp6: "0: 0100007F:4A93 00000000:0000 0A ...", with the local address, the port in hexadecimal
// digits, the state, and as the tenth field the inode of the socket. /proc/PID/fd links to "socket:[INODE]".
#include "net/port_holder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

void AddListening(std::string_view table, uint16_t port, std::set<std::string>& sockets) {
  constexpr std::string_view kListens = "0A";
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, other, inode;
    words >> number >> local >> remote >> state;
    for (int i = 4; i < 9; ++i) words >> other;
    words >> inode;
    uint16_t of = 0;
    const char* const digits = local.data() + std::min(local.size(), local.rfind(':') + 1);
    std::from_chars(digits, local.data() + local.size(), of, 16);
    if (state == kListens && of == port) sockets.insert("socket:[" + inode + "]");
  }
}

// The name of its program's file.
std::string ProgramOf(const std::string& pid) {
  std::string path(ProcReader().Read(pid, "/cmdline"));
  path.resize(std::min(path.size(), path.find('\0')));
  return OneLine(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string HolderOf(uint16_t port) {
  std::set<std::string> sockets;
  ProcReader proc;
  for (const char* table : {"net/tcp", "net/tcp6"}) AddListening(proc.Read(table), port, sockets);
  using Entries = std::filesystem::directory_iterator;
  std::error_code error;
  for (Entries process("/proc", error); !error && process != Entries(); process.increment(error)) {
    const std::string pid = process->path().filename();
    if (!IsDigit(pid[0])) continue;
    std::error_code refused;  // it has ended, or is another user's
    for (Entries fd(process->path() / "fd", refused); !refused && fd != Entries(); fd.increment(refused)) {
      std::error_code closed;
      if (sockets.contains(std::filesystem::read_symlink(fd->path(), closed)))
        return "pid " + pid + " (" + ProgramOf(pid) + ")";
    }
  }
  return "another process";
}

}  // namespace persia::agent
