// Disconnects stalled clients of the HTTP server when it has no free worker for others.
//
//   StallWatchdog watchdog({.workers = 40});
//   watchdog.Start(port);                       // once the server listens
//   watchdog.WorkerBusy();                      // from the server, when a worker gets and ends a connection
//   watchdog.SetStage(peer, Stage::kWorking);   // and as a connection proceeds
//
// A connection stalls while the server waits for its client to send the rest of the request or to receive the response. While
// there are free workers, that is allowed. When there are as many connections as workers, the watchdog shuts down those that
// have stalled for some tenths of a second, until workers are free: a complete request waits for about a second at most. It
// never disconnects a client whose request is being handled.
//
// civetweb hands out no sockets. The watchdog finds them in /proc/self/fd by their ports, and asks the kernel for their state.
// Thread safety: Start, Stop and the destructor from one thread; the other methods from any.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace persia::agent {

// A client must receive a response at this rate, in bytes per second.
inline constexpr size_t kMinReceiveRate = 1 << 20;

class StallWatchdog {
 public:
  // The client's end of a connection.
  struct Peer {
    std::array<uint8_t, 16> ip{};  // IPv6; IPv4 as ::ffff:a.b.c.d
    uint16_t port = 0;
    auto operator<=>(const Peer&) const = default;
  };
  enum class Stage {
    kReading,  // the client has not sent all of the request; the stage of unknown connections
    kWorking,  // the server waits for nothing from the client
    kWriting,  // the client has not received all of the response
    kClosing,  // the socket is about to be closed: do not touch it
  };
  struct Options {
    size_t workers = 0;
    // Also check while no worker is reported busy: a TLS handshake takes a worker without WorkerBusy().
    bool check_periodically = false;
    // Called with the number of clients that were disconnected.
    std::function<void(size_t)> on_disconnect = {};
  };

  // `ip`: an IPv4 or IPv6 address as text.
  static Peer PeerOf(const std::string& ip, uint16_t port);

  // The bytes of a response that a client must have received this long after the response began; with fewer it counts as
  // stalled. In the first second nothing is required: 0 or less.
  static double LeastReceived(std::chrono::duration<double> after);

  explicit StallWatchdog(Options options) : options_(std::move(options)) {}
  ~StallWatchdog() { Stop(); }
  StallWatchdog(const StallWatchdog&) = delete;
  StallWatchdog& operator=(const StallWatchdog&) = delete;

  // Watches the connections to this port of this process until Stop. Without /proc it disconnects no client.
  void Start(uint16_t port);
  void Stop();

  void WorkerBusy();
  void WorkerFree();
  void SetStage(Peer peer, Stage stage);
  // Call when the socket is closed.
  void Forget(Peer peer);

 private:
  struct Connection {
    Stage stage = Stage::kReading;
    std::chrono::steady_clock::time_point since;
    uint64_t received = 0;  // bytes of the response, at the last check that saw progress
    std::chrono::steady_clock::time_point received_at;
  };
  void Run();
  // Waits until all workers are busy, or a periodic check is due.
  void AwaitCheck() PERSIA_REQUIRES(mutex_);
  void WaitUntil(std::chrono::steady_clock::time_point time) PERSIA_REQUIRES(mutex_);
  // Returns the number of clients that were disconnected. `full`: whether there are as many connections as workers.
  size_t Check(bool& full) PERSIA_REQUIRES(mutex_);
  bool IsStalled(int socket, Peer peer) PERSIA_REQUIRES(mutex_);

  const Options options_;
  uint16_t port_ = 0;
  Mutex mutex_;  // while it is held, no socket is closed whose stage is not kClosing
  CondVar changed_;
  std::map<Peer, Connection> connections_ PERSIA_GUARDED_BY(mutex_);
  std::set<Peer> stalled_ PERSIA_GUARDED_BY(mutex_);       // at the last check: a connection must be stalled in two checks
  std::set<Peer> disconnected_ PERSIA_GUARDED_BY(mutex_);  // not closed yet
  size_t busy_workers_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool stopping_ PERSIA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace persia::agent
