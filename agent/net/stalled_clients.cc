#include "net/stalled_clients.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Between two looks, as long as there is no room.
constexpr milliseconds kPause{50};
// Between two looks that nobody asked for.
constexpr milliseconds kRarely{250};
// Within this a request has to begin.
constexpr milliseconds kPatience{100};
// A client must take a part of the answer within kReaderPatience, and after a second kSlowestReader bytes a second.
constexpr milliseconds kReaderPatience{250};
constexpr milliseconds kSlowReaderPatience{1000};

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

std::optional<sockaddr_in> Address(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return address;
}

int Option(int socket, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : 0;
}

// A stream of this port, listening or not.
bool IsOf(uint16_t port, int socket) {
  const auto own = Address(socket, getsockname);
  return own && ntohs(own->sin_port) == port && Option(socket, SO_TYPE) == SOCK_STREAM;
}

}  // namespace

StalledClients::Peer StalledClients::PeerOf(const std::string& ip, uint16_t port) {
  Peer peer{.port = port};
  inet_pton(AF_INET, ip.c_str(), &peer.ip);
  return peer;
}

void StalledClients::Watch(uint16_t port) {
  port_ = port;
  thread_ = std::thread(&StalledClients::Run, this);
}

void StalledClients::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void StalledClients::WorkerTaken() {
  const std::lock_guard lock(mutex_);
  if (++taken_ >= options_.workers) {
    changed_.notify_all();
  }
}

void StalledClients::WorkerFree() {
  const std::lock_guard lock(mutex_);
  --taken_;
}

void StalledClients::Note(Peer peer, Stage stage) {
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  noted_[peer] = {.stage = stage, .since = now, .taken_at = now};
}

void StalledClients::Forget(Peer peer) {
  const std::lock_guard lock(mutex_);
  noted_.erase(peer);
}

void StalledClients::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto wanted = [this] { return stopping_ || taken_ >= options_.workers; };
    if (options_.looks_always) {
      changed_.wait_for(lock, kRarely, wanted);
    } else {
      changed_.wait(lock, wanted);
    }
    do {
      changed_.wait_for(lock, kPause, [this] { return stopping_; });
    } while (!stopping_ && CutOff(lock));
  }
}

// Returns whether there is no room.
bool StalledClients::CutOff(std::unique_lock<std::mutex>& lock) {
  size_t cut = 0;
  std::vector<std::pair<int, Peer>> connections;
  for (const int file : OpenFiles()) {
    const auto peer = IsOf(port_, file) ? Address(file, getpeername) : std::nullopt;
    if (peer) {
      connections.emplace_back(file, Peer{peer->sin_addr.s_addr, ntohs(peer->sin_port)});
    }
  }
  const bool full = connections.size() >= options_.workers;
  std::set<Peer> stalled;
  std::set<Peer> cut_off;
  for (const auto& [socket, peer] : connections) {
    if (cut_off_.contains(peer)) {
      cut_off.insert(peer);
    } else if (Stalls(socket, peer)) {
      stalled.insert(peer);
      if (full && stalled_.contains(peer) && shutdown(socket, SHUT_RDWR) == 0) {
        cut_off.insert(peer);
        ++cut;
      }
    }
  }
  stalled_ = std::move(stalled);
  cut_off_ = std::move(cut_off);
  if (cut > 0 && options_.on_cut) {
    lock.unlock();
    options_.on_cut(cut);
    lock.lock();
  }
  return full;
}

bool StalledClients::Stalls(int socket, Peer peer) {
  const auto found = noted_.find(peer);
  Noted unknown;
  Noted& noted = found == noted_.end() ? unknown : found->second;
  tcp_info info{};
  socklen_t size = sizeof info;
  int unread = 0;
  if (noted.stage == Stage::kWorking || noted.stage == Stage::kClosing ||
      getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || ioctl(socket, FIONREAD, &unread) != 0) {
    return false;
  }
  if (noted.stage == Stage::kWriting) {
    const auto now = steady_clock::now();
    if (info.tcpi_bytes_acked > noted.taken) {
      noted.taken = info.tcpi_bytes_acked;
      noted.taken_at = now;
    }
    const std::chrono::duration<double> taking = now - noted.since - kSlowReaderPatience;
    return now - noted.taken_at > kReaderPatience ||
           (taking.count() > 0 && static_cast<double>(noted.taken) < taking.count() * static_cast<double>(kSlowestReader));
  }
  // What nobody has read yet waits for a worker. As long as nothing is sent this is the time since the connection was made,
  // also while it was waiting in the kernel.
  return unread == 0 && milliseconds(info.tcpi_last_data_sent) > kPatience;
}

}  // namespace persia::agent
