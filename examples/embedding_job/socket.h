// TCP: addresses, listeners, and connections that carry frames.
//
// Thread safety: a Connection serves one thread at a time, but for Shutdown; the rest are values or used by one thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "messages.h"
#include "stop_signal.h"
#include "wire.h"

namespace embedding_job {

// A file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }
  // Gives it away.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// "host:port", "[::1]:port", or ":port" for all interfaces.
struct Address {
  std::string host;
  std::string port;

  // Throws JobError for what is no address.
  static Address Parse(std::string_view text);
  [[nodiscard]] std::string ToString() const;
};

// A socket that listens.
class Listener {
 public:
  // On an address, whose port may be 0; or on "fd:N", a socket that whoever started this process made for it.
  explicit Listener(const std::string& where);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Gives the descriptor away.
  int Release() { return fd_.Release(); }
  // The address in use, with the port that the system chose.
  [[nodiscard]] std::string address() const;

 private:
  Descriptor fd_;
};

// A connection. Each frame that it sends tells the peer whether a stop is requested here, and each that it receives may request
// one.
class Connection {
 public:
  // `stop` must outlive it. `peer` is for error messages: "embedding_server at 127.0.0.1:7002".
  Connection(Descriptor fd, std::string peer, StopSignal& stop);

  // Connects and says hello; tries again until it succeeds, since the services of a job start in any order. Throws JobError at
  // the deadline, or when the peer refuses the hello; StoppedEarly when a stop is requested before.
  static Connection Open(const Address& address, const std::string& peer_role, const Hello& hello,
                         std::chrono::steady_clock::time_point deadline, StopSignal& stop);

  void Send(const Frame& frame);
  // None: the peer closed the connection between two frames.
  std::optional<Frame> Receive();
  // Sends a request and waits for its answer.
  Frame Call(const Frame& request);
  // The answer to a request that was sent.
  Frame Answer();
  // Wakes whoever waits in Send or Receive, which then fail. Thread safe.
  void Shutdown();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& peer() const { return peer_; }

 private:
  [[nodiscard]] bool ReceiveBytes(void* to, size_t count, bool may_end);

  Descriptor fd_;
  std::string peer_;
  StopSignal* stop_;
};

}  // namespace embedding_job
