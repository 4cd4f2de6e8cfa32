// TCP: addresses, listeners, and connections that carry frames.
//
// Thread safety: one thread at a time uses a Connection, except for Shutdown. The others are values or used by one thread.
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
  // Releases ownership.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// "host:port", "[::1]:port", or ":port" for all interfaces.
struct Address {
  std::string host;
  std::string port;

  // Throws JobError if the text is not an address.
  static Address Parse(std::string_view text);
  [[nodiscard]] std::string ToString() const;
};

// A socket that listens.
class Listener {
 public:
  // Listens on an address, whose port may be 0, or on "fd:N", a listening socket that the parent process passed.
  explicit Listener(const std::string& where);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Releases ownership of the descriptor.
  int Release() { return fd_.Release(); }
  // The address in use, with the port that the system chose.
  [[nodiscard]] std::string address() const;

 private:
  Descriptor fd_;
};

// A connection. Each sent frame tells the peer whether a stop is requested here; each received frame may request a stop.
class Connection {
 public:
  // `stop` must outlive it. `peer` is for error messages: "embedding_server at 127.0.0.1:7002".
  Connection(Descriptor fd, std::string peer, StopSignal& stop);

  // Connects and says hello. Retries, because the services of a job start in any order. Throws JobError at the deadline, or if
  // the peer refuses the hello; StoppedEarly if a stop is requested before.
  static Connection Open(const Address& address, const std::string& peer_role, const Hello& hello,
                         std::chrono::steady_clock::time_point deadline, StopSignal& stop);

  void Send(const Frame& frame);
  // None: the peer closed the connection between two frames.
  std::optional<Frame> Receive();
  // Sends a request and waits for its answer.
  Frame Call(const Frame& request);
  // Waits for the answer to a request that was sent.
  Frame Answer();
  // Makes a waiting Send or Receive fail. Thread-safe.
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
