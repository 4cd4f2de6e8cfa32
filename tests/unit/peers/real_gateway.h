// A Debian prometheus-pushgateway on a free loopback port, without a file, for as long as the object lives.
//
// Thread safety: belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "peers/socket.h"

namespace persia::agent {

class RealGateway {
 public:
  // Starts it and waits until it answers. `flags` come after the ones for port and file.
  explicit RealGateway(std::vector<std::string> flags = {});
  ~RealGateway();
  RealGateway(const RealGateway&) = delete;
  RealGateway& operator=(const RealGateway&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // SIGKILL, and again on the same port, with nothing in it.
  void Kill();
  void Start();

  // Whether it answers a refused push and names the offender; 1.11.0 closes the connection instead.
  [[nodiscard]] bool NamesOffenders() const;

  // Its whole /metrics.
  [[nodiscard]] std::string Metrics() const;
  // The lines of its /metrics that begin with this text, which are the samples of one family.
  [[nodiscard]] std::vector<std::string> Lines(const std::string& begin) const;

 private:
  const std::vector<std::string> flags_;
  const Socket reserved_ = Socket::Reserve();  // keeps the port while the gateway is down
  const uint16_t port_ = reserved_.port();
  pid_t pid_ = -1;
};

}  // namespace persia::agent
