#include "net/stall_watchdog.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kCheckInterval{50};      // while all workers are busy
constexpr milliseconds kPeriodicInterval{250};  // otherwise, with Options::check_periodically
// A request must begin within kRequestPatience. A client must receive some of the response every kReceivePatience, and after
// kRatePatience at least kMinReceiveRate.
constexpr milliseconds kRequestPatience{100};
constexpr milliseconds kReceivePatience{250};
constexpr milliseconds kRatePatience{1000};

std::vector<int> OpenFiles() {
  std::vector<int> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename().string();
    int file = -1;
    std::from_chars(name.data(), name.data() + name.size(), file);
    files.push_back(file);
  }
  return files;
}

std::array<uint8_t, 16> Mapped(const in_addr& ipv4) {
  std::array<uint8_t, 16> ip{};
  ip[10] = ip[11] = 0xFF;
  std::memcpy(&ip[12], &ipv4, sizeof ipv4);
  return ip;
}

// An end of a socket's connection; none: it is not an IP socket.
std::optional<StallWatchdog::Peer> Address(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address{};
  socklen_t size = sizeof address;
  if (ask(socket, &address.any, &size) != 0) return std::nullopt;
  if (address.any.sa_family == AF_INET) return StallWatchdog::Peer{Mapped(address.v4.sin_addr), ntohs(address.v4.sin_port)};
  if (address.any.sa_family != AF_INET6) return std::nullopt;
  return StallWatchdog::Peer{std::to_array(address.v6.sin6_addr.s6_addr), ntohs(address.v6.sin6_port)};
}

// Whether it is a TCP socket of this local port, listening or connected.
bool HasLocalPort(int socket, uint16_t port) {
  const auto own = Address(socket, getsockname);
  int type = 0;
  socklen_t size = sizeof type;
  return own && own->port == port && getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

StallWatchdog::Peer StallWatchdog::PeerOf(const std::string& ip, uint16_t port) {
  Peer peer{.port = port};
  in_addr ipv4;
  if (inet_pton(AF_INET, ip.c_str(), &ipv4) == 1)
    peer.ip = Mapped(ipv4);
  else
    inet_pton(AF_INET6, ip.c_str(), peer.ip.data());
  return peer;
}

double StallWatchdog::LeastReceived(std::chrono::duration<double> after) {
  const std::chrono::duration<double> rated = after - kRatePatience;
  return rated.count() * static_cast<double>(kMinReceiveRate);
}

void StallWatchdog::Start(uint16_t port) {
  port_ = port;
  thread_ = StartThread("web watchdog", [this] { Run(); });
}

void StallWatchdog::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void StallWatchdog::WorkerBusy() {
  const MutexLock lock(mutex_);
  if (++busy_workers_ >= options_.workers) changed_.NotifyAll();
}

void StallWatchdog::WorkerFree() {
  const MutexLock lock(mutex_);
  --busy_workers_;
}

void StallWatchdog::SetStage(Peer peer, Stage stage) {
  const MutexLock lock(mutex_);
  const auto now = steady_clock::now();
  connections_[peer] = {.stage = stage, .since = now, .received_at = now};
}

void StallWatchdog::Forget(Peer peer) {
  const MutexLock lock(mutex_);
  connections_.erase(peer);
}

void StallWatchdog::Run() {
  bool full = false;
  for (;;) {
    size_t disconnected = 0;
    {
      const MutexLock lock(mutex_);
      if (!full) AwaitCheck();
      WaitUntil(steady_clock::now() + kCheckInterval);
      if (stopping_) return;
      disconnected = Check(full);
    }
    if (disconnected > 0 && options_.on_disconnect) options_.on_disconnect(disconnected);
  }
}

void StallWatchdog::AwaitCheck() {
  const auto due = steady_clock::now() + kPeriodicInterval;
  while (!stopping_ && busy_workers_ < options_.workers)
    if (!options_.check_periodically)
      changed_.Wait(mutex_);
    else if (steady_clock::now() < due)
      changed_.WaitUntil(mutex_, due);
    else
      return;
}

void StallWatchdog::WaitUntil(steady_clock::time_point time) {
  while (!stopping_ && steady_clock::now() < time) changed_.WaitUntil(mutex_, time);
}

size_t StallWatchdog::Check(bool& full) {
  std::vector<std::pair<int, Peer>> sockets;
  for (const int file : OpenFiles()) {
    const auto peer = HasLocalPort(file, port_) ? Address(file, getpeername) : std::nullopt;
    if (peer) sockets.emplace_back(file, *peer);
  }
  full = sockets.size() >= options_.workers;
  size_t newly_disconnected = 0;
  std::set<Peer> stalled;
  std::set<Peer> disconnected;
  for (const auto& [socket, peer] : sockets) {
    if (disconnected_.contains(peer)) {
      disconnected.insert(peer);
    } else if (IsStalled(socket, peer)) {
      stalled.insert(peer);
      if (full && stalled_.contains(peer) && shutdown(socket, SHUT_RDWR) == 0) {
        disconnected.insert(peer);
        ++newly_disconnected;
      }
    }
  }
  stalled_ = std::move(stalled);
  disconnected_ = std::move(disconnected);
  return newly_disconnected;
}

bool StallWatchdog::IsStalled(int socket, Peer peer) {
  const auto found = connections_.find(peer);
  Connection unknown;
  Connection& connection = found == connections_.end() ? unknown : found->second;
  tcp_info info{};
  socklen_t size = sizeof info;
  int unread = 0;
  if (connection.stage == Stage::kWorking || connection.stage == Stage::kClosing ||
      getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || ioctl(socket, FIONREAD, &unread) != 0)
    return false;
  if (connection.stage == Stage::kWriting) {
    const auto now = steady_clock::now();
    if (info.tcpi_bytes_acked > connection.received) {
      connection.received = info.tcpi_bytes_acked;
      connection.received_at = now;
    }
    return now - connection.received_at > kReceivePatience ||
           static_cast<double>(connection.received) < LeastReceived(now - connection.since);
  }
  // Unread bytes wait for a worker. Before the server sends anything, tcpi_last_data_sent is the time since the connection was
  // made, including its time in the kernel's backlog.
  return unread == 0 && milliseconds(info.tcpi_last_data_sent) > kRequestPatience;
}

}  // namespace persia::agent
