// Cuts off clients that stall, as soon as a server has no worker left for others.
//
//   StalledClients clients({.workers = 64});
//   clients.Watch(port);                          // once the server listens
//   clients.WorkerTaken();                        // by the server, as its workers come and go,
//   clients.Note(peer, Stage::kWorking);          // and as a connection goes on
//
// A connection stalls while the server waits for its client: for the rest of the request, or for the answer to be taken. That
// is nobody's business while there are free workers. When as many connections are open as there are workers, those that have
// stalled for some tenths of a second are shut down, and go on being so until there is room: a request that comes whole waits
// behind others for about a second at most, however many stall. Requests that are being worked on are never cut off.
//
// What a connection does is asked from the kernel, by the sockets of this process; nothing runs while there are free workers.
// Thread safety: Watch, Stop and the destructor from one thread; the rest from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace persia::agent {

// A client that takes less of an answer than so many bytes a second is cut off.
inline constexpr size_t kSlowestReader = 1 << 20;

class StalledClients {
 public:
  // A client's end of its connection.
  struct Peer {
    uint32_t ip = 0;  // in the network's order of bytes
    uint16_t port = 0;
    auto operator<=>(const Peer&) const = default;
  };
  enum class Stage {
    kReading,  // the client has not sent all yet; also what nothing is known of
    kWorking,  // waits for nothing of its client
    kWriting,  // the client has not taken all yet
    kClosing,  // its socket is about to be closed: not to be touched
  };
  struct Options {
    size_t workers = 0;
    // Also looks now and then: workers may be taken without a word of it, as by a TLS handshake.
    bool looks_always = false;
    // Called with the number of clients that were cut off, after it happened.
    std::function<void(size_t)> on_cut = {};
  };

  // `ip`: an IPv4 address as text.
  static Peer PeerOf(const std::string& ip, uint16_t port);

  explicit StalledClients(Options options) : options_(std::move(options)) {}
  ~StalledClients() { Stop(); }
  StalledClients(const StalledClients&) = delete;
  StalledClients& operator=(const StalledClients&) = delete;

  // For the server that listens on this port of this process; until Stop. Without /proc nobody is cut off.
  void Watch(uint16_t port);
  void Stop();

  void WorkerTaken();
  void WorkerFree();
  void Note(Peer peer, Stage stage);
  // Its socket is closed.
  void Forget(Peer peer);

 private:
  struct Noted {
    Stage stage = Stage::kReading;
    std::chrono::steady_clock::time_point since;
    uint64_t taken = 0;  // of the answer, at the last look that saw more of it taken
    std::chrono::steady_clock::time_point taken_at;
  };
  void Run();
  bool CutOff(std::unique_lock<std::mutex>& lock);
  bool Stalls(int socket, Peer peer);

  const Options options_;
  uint16_t port_ = 0;
  std::mutex mutex_;  // while it is held, no socket of a peer that is not kClosing is closed
  std::map<Peer, Noted> noted_;
  std::set<Peer> stalled_;  // at the last look; whoever a worker has just begun to serve is not seen twice so
  std::set<Peer> cut_off_;  // and not closed yet
  size_t taken_ = 0;        // workers
  bool stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace persia::agent
