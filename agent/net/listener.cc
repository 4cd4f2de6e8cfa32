#include "net/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/owned_fd.h"
#include "base/text.h"
#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

// A socket's address, of either family.
union SocketAddress {
  explicit SocketAddress(const ListenAddress& address) : v6{} {
    if (address.IsIpv6()) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(address.port);
      inet_pton(AF_INET6, address.ip.c_str(), &v6.sin6_addr);
    } else {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(address.port);
      inet_pton(AF_INET, address.ip.c_str(), &v4.sin_addr);
    }
  }
  [[nodiscard]] socklen_t Size() const { return any.sa_family == AF_INET6 ? sizeof v6 : sizeof v4; }

  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

}  // namespace

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const Error not_an_address{
      "is not an IP address and a port (127.0.0.1:19091; [::1]:19091; :19091 for all IPv4 addresses; port 0 for any free one)"};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an_address;
  ListenAddress address;
  std::string_view ip = text.substr(0, colon);
  const bool is_ipv6 = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
  if (is_ipv6) ip = ip.substr(1, ip.size() - 2);
  address.ip = ip.empty() ? "0.0.0.0" : ip == "localhost" ? "127.0.0.1" : ip;
  in6_addr parsed;
  if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, address.ip.c_str(), &parsed) != 1) return not_an_address;
  const char* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || parsed_end != end) return not_an_address;
  return address;
}

int BindError(const ListenAddress& address) {
  const SocketAddress wanted(address);
  const OwnedFd fd(socket(wanted.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const bool bound = fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd.get(), &wanted.any, wanted.Size()) == 0;
  return bound ? 0 : errno;
}

void WakeListener(const ListenAddress& address) {
  SocketAddress to(address);
  const OwnedFd fd(socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (address.ip == "0.0.0.0") to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (address.ip == "::") to.v6.sin6_addr = in6addr_loopback;
  if (fd.valid()) static_cast<void>(connect(fd.get(), &to.any, to.Size()));
}

namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// The default callback would ask for the passphrase on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Error Refused(const std::string& what, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return Error{what + " \"" + file + "\": " + (reason == nullptr ? "OpenSSL refuses it" : reason)};
}

// Appends the certificates of a file. Returns the first one; null: OpenSSL's error says why.
Certificate AppendCertificates(const std::string& file, BIO* to) {
  const Bio from(BIO_new_file(file.c_str(), "r"));
  Certificate first;
  while (from != nullptr) {
    Certificate next(PEM_read_bio_X509(from.get(), nullptr, NoPassphrase, nullptr));
    if (next == nullptr) break;
    PEM_write_bio_X509(to, next.get());
    if (first == nullptr) first = std::move(next);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE && first != nullptr)
    ERR_clear_error();  // the end of the file
  return ERR_peek_error() == 0 ? std::move(first) : nullptr;
}

}  // namespace

Result<std::string> ReadPem(const ListenerTls& tls) {
  ERR_clear_error();
  const Bio pem(BIO_new(BIO_s_mem()));
  if (pem == nullptr) return Error{"no memory for the certificate"};
  const Certificate certificate = AppendCertificates(tls.cert_file, pem.get());
  if (certificate == nullptr) return Refused("cert_file", tls.cert_file);
  const Bio from(BIO_new_file(tls.key_file.c_str(), "r"));
  const Key key(from == nullptr ? nullptr : PEM_read_bio_PrivateKey(from.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    return Error{"key_file \"" + tls.key_file + "\": has no private key without a passphrase (" +
                 (reason == nullptr ? "OpenSSL refuses it" : reason) + ")"};
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return Error{"key_file \"" + tls.key_file + "\": is not the key of the first certificate in cert_file"};
  PEM_write_bio_PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const char* text = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

Status CheckFiles(const ListenerTls& tls) {
  if (const Result<std::string> pem = ReadPem(tls); !pem.ok()) return Error{pem.error()};
  if (tls.client_ca_file.empty()) return Done{};
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_load_verify_locations(context.get(), tls.client_ca_file.c_str(), nullptr) != 1)
    return Refused("client_ca_file", tls.client_ca_file);
  return Done{};
}

// A line of /proc/net/tcp and tcp6: "0: 0100007F:4A93 00000000:0000 0A ...", with the local address, the port in hexadecimal
// digits, the state, and as the tenth field the inode of the socket. /proc/PID/fd links to "socket:[INODE]".
namespace {

void AddListening(std::string_view table, uint16_t port, std::set<std::string>& sockets) {
  constexpr std::string_view kListens = "0A";
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, other, inode;
    words >> number >> local >> remote >> state;
    for (int i = 4; i < 9; ++i) words >> other;
    words >> inode;
    uint16_t of = 0;
    const char* const digits = local.data() + std::min(local.size(), local.rfind(':') + 1);
    std::from_chars(digits, local.data() + local.size(), of, 16);
    if (state == kListens && of == port) sockets.insert("socket:[" + inode + "]");
  }
}

// The name of its program's file.
std::string ProgramOf(const std::string& pid) {
  std::string path(ProcReader().Read(pid, "/cmdline"));
  path.resize(std::min(path.size(), path.find('\0')));
  return OneLine(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string HolderOf(uint16_t port) {
  std::set<std::string> sockets;
  ProcReader proc;
  for (const char* table : {"net/tcp", "net/tcp6"}) AddListening(proc.Read(table), port, sockets);
  using Entries = std::filesystem::directory_iterator;
  std::error_code error;
  for (Entries process("/proc", error); !error && process != Entries(); process.increment(error)) {
    const std::string pid = process->path().filename();
    if (!IsDigit(pid[0])) continue;
    std::error_code refused;  // it has ended, or is another user's
    for (Entries fd(process->path() / "fd", refused); !refused && fd != Entries(); fd.increment(refused)) {
      std::error_code closed;
      if (sockets.contains(std::filesystem::read_symlink(fd->path(), closed)))
        return "pid " + pid + " (" + ProgramOf(pid) + ")";
    }
  }
  return "another process";
}

}  // namespace persia::agent
