// Where a server listens: an IP address and a port.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

struct ListenAddress {
  std::string ip;  // without brackets
  uint16_t port = 0;

  [[nodiscard]] bool IsIpv6() const { return ip.find(':') != std::string::npos; }
  // "127.0.0.1:9464" or "[::1]:9464".
  [[nodiscard]] std::string Text() const { return (IsIpv6() ? '[' + ip + ']' : ip) + ':' + std::to_string(port); }
};

// "IPv4:port", "[IPv6]:port", "localhost:port", ":port" for all IPv4 addresses, "[::]:port" for all of both kinds. An error
// names the expected form, without quoting `text`.
Result<ListenAddress> ParseListenAddress(std::string_view text);
// Tries to bind the address; the error number, or 0. civetweb reports only that it failed.
int BindError(const ListenAddress& address);
// Wakes a thread that waits in accept(): connects and disconnects.
void WakeListener(const ListenAddress& address);

}  // namespace persia::agent
