// Where a server listens: an IPv4 address and a port.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace persia::agent {

struct ListenAddress {
  std::string ip;
  uint16_t port = 0;

  [[nodiscard]] std::string Text() const { return ip + ':' + std::to_string(port); }
  [[nodiscard]] sockaddr_in Socket() const;
};

// "IPv4:port", "localhost:port", or ":port" for all addresses. An error quotes the text.
Result<ListenAddress> ParseListenAddress(const std::string& text);
// Tries to bind the address; the error number, or 0. civetweb reports only that it failed.
int BindError(const ListenAddress& address);
// Wakes a thread that waits in accept(): connects and disconnects.
void WakeListener(const ListenAddress& address);

}  // namespace persia::agent
