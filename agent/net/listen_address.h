// Where a server listens: an IPv4 address and a port.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "model/result.h"

namespace persia::agent {

struct ListenAddress {
  std::string ip;
  uint16_t port = 0;

  [[nodiscard]] std::string Text() const { return ip + ':' + std::to_string(port); }
  [[nodiscard]] sockaddr_in Socket() const;
};

// "IPv4:port", "localhost:port", or ":port" for all addresses. An error quotes the text.
Result<ListenAddress> ParseListenAddress(const std::string& text);
// Why it cannot be bound, asked from the kernel itself since civetweb tells only that it failed; 0 if it can.
int BindError(const ListenAddress& address);
// Wakes a thread that waits for a connection.
void Knock(const ListenAddress& address);

}  // namespace persia::agent
