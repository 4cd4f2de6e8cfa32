// Loopback sockets for tests.
//
// Thread safety: a socket belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace persia::agent {

class Socket {
 public:
  // A connection to a loopback port; a test that cannot have it fails.
  static Socket Connect(uint16_t port);
  // Listens on a free loopback port.
  static Socket Listen();
  // Keeps a free loopback port. It refuses connections until a program listens on it with SO_REUSEADDR, as Go's do.
  static Socket Reserve();

  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  [[nodiscard]] int fd() const { return fd_; }
  // Of this side.
  [[nodiscard]] uint16_t port() const;
  void Send(std::string_view bytes) const;
  // All that comes until the other side closes or resets.
  [[nodiscard]] std::string ReadToEnd() const;

 private:
  int fd_ = -1;
};

}  // namespace persia::agent
