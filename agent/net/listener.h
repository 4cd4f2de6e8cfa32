// Where a server listens, with which TLS, and who has the port.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

// Where a server listens: an IP address and a port.
//
// Thread safety: plain data and pure functions.
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

// TLS of the listener.
//
// Thread safety: plain data and a function without state.
struct ListenerTls {
  enum class ClientCert { kIgnore, kVerifyIfGiven, kRequire };
  enum class Version { k12, k13 };

  std::string cert_file{};  // PEM, with its chain
  std::string key_file{};   // PEM, without a passphrase
  // PEM: the CAs of client certificates.
  std::string client_ca_file{};
  ClientCert client_cert = ClientCert::kIgnore;
  Version min_version = Version::k12;

  bool operator==(const ListenerTls&) const = default;
};

// The certificates of `cert_file` and the key of `key_file` in one text: the server's own certificate, its chain, the key. An
// error names the file and says why OpenSSL refuses it.
Result<std::string> ReadPem(const ListenerTls& tls);
// As ReadPem, and for the file of client CAs.
Status CheckFiles(const ListenerTls& tls);

// Who listens on a port of this host.
//
// Thread safety: a pure function of /proc.

// "pid 4711 (python3)"; "another process" if it is another user's or in another container, so that this process cannot see it.
[[nodiscard]] std::string HolderOf(uint16_t port);

}  // namespace persia::agent
