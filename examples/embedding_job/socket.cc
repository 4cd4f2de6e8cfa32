#include "socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace embedding_job {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string ErrnoText() { return std::strerror(errno); }

AddressList Resolve(const Address& address, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  if (const int code = getaddrinfo(host, address.port.c_str(), &hints, &found); code != 0) {
    // Retried: the name of a service may exist only once it runs.
    throw ConnectionLost("cannot resolve \"" + address.ToString() +
                         "\": " + (code == EAI_SYSTEM ? ErrnoText() : gai_strerror(code)));
  }
  return {found, freeaddrinfo};
}

// Connects, until the deadline or a requested stop. Returns -1 with errno on failure.
Descriptor ConnectOnce(const addrinfo& to, std::chrono::steady_clock::time_point deadline, const StopSignal& stop) {
  Descriptor fd(socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol));
  if (fd.get() < 0) return fd;
  if (connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return Descriptor();
    pollfd waited[] = {{.fd = fd.get(), .events = POLLOUT, .revents = 0}, {.fd = stop.fd(), .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    poll(waited, 2, static_cast<int>(std::max<int64_t>(left, 0)));
    int error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (waited[0].revents != 0) getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      errno = error;
      return Descriptor();
    }
  }
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Descriptor ConnectToAny(const Address& address, std::chrono::steady_clock::time_point deadline, const StopSignal& stop) {
  const AddressList list = Resolve(address, 0);
  for (const addrinfo* to = list.get(); to != nullptr; to = to->ai_next)
    if (Descriptor fd = ConnectOnce(*to, deadline, stop); fd.get() >= 0) return fd;
  throw ConnectionLost(ErrnoText());
}

Descriptor ListenOn(const std::string& where) {
  if (where.starts_with("fd:")) {
    int fd = -1;
    const char* end = where.data() + where.size();
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (auto [rest, error] = std::from_chars(where.data() + 3, end, fd);
        error != std::errc() || rest != end || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 ||
        listening == 0)
      throw JobError("\"" + where + "\" is not a listening socket");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return Descriptor(fd);
  }
  const AddressList list = Resolve(Address::Parse(where), AI_PASSIVE);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Descriptor fd(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    const int yes = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd.get() >= 0 && bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0) return fd;
  }
  throw JobError("cannot listen on \"" + where + "\": " + ErrnoText());
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) const Descriptor old(std::exchange(fd_, other.Release()));
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Address Address::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']'))
      host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
      throw JobError("\"" + std::string(text) + "\" is not an address; write an IPv6 address as [::1]:7001");
    address = {std::string(host), std::string(text.substr(colon + 1))};
  }
  if (address.port.empty()) throw JobError("\"" + std::string(text) + "\" is not an address; write it as host:port");
  return address;
}

std::string Address::ToString() const { return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port; }

Listener::Listener(const std::string& where) : fd_(ListenOn(where)) {}

std::string Listener::address() const {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  auto* name = reinterpret_cast<sockaddr*>(&storage);
  if (getsockname(fd_.get(), name, &size) != 0 ||
      getnameinfo(name, size, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return Address{host, port}.ToString();
}

Connection::Connection(Descriptor fd, std::string peer, StopSignal& stop)
    : fd_(std::move(fd)), peer_(std::move(peer)), stop_(&stop) {
  // Each frame is answered before the next, so Nagle's algorithm would only add latency.
  const int yes = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Connection Connection::Open(const Address& address, const std::string& peer_role, const Hello& hello,
                            std::chrono::steady_clock::time_point deadline, StopSignal& stop) {
  constexpr int kRetryMilliseconds = 100;
  const std::string peer = peer_role + " at " + address.ToString();
  while (true) {
    if (stop.Requested()) throw StoppedEarly();
    std::string cause;
    try {
      Connection connection(ConnectToAny(address, deadline, stop), peer, stop);
      connection.Send(Encode(hello));
      // A peer that is ending closes the connection before it answers; the next attempt shows it.
      if (std::optional<Frame> answer = connection.Receive()) {
        Expect(*answer, MessageType::kAck);
        return connection;
      }
      cause = "it closes the connection";
    } catch (const ConnectionLost& error) {
      cause = error.what();
    }
    if (std::chrono::steady_clock::now() >= deadline)
      throw JobError("cannot reach the " + peer + ": " + cause + "; is it started, and is the address right?");
    if (stop.WaitFor(kRetryMilliseconds)) throw StoppedEarly();
  }
}

void Connection::Send(const Frame& frame) {
  FrameHeader header = {.magic = kFrameMagic,
                        .type = static_cast<uint16_t>(frame.type),
                        .flags = stop_->Requested() ? kStopping : uint16_t{0},
                        .payload_bytes = static_cast<uint32_t>(frame.payload.size())};
  if (frame.payload.size() > kMaxPayloadBytes)
    throw WireError("a frame of " + std::to_string(frame.payload.size()) + " bytes is too large: use smaller batches");
  iovec parts[] = {{&header, sizeof(header)}, {const_cast<std::byte*>(frame.payload.data()), frame.payload.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  while (message.msg_iovlen > 0) {
    const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      throw ConnectionLost("cannot send to " + peer_ + ": " + ErrnoText());
    }
    auto rest = static_cast<size_t>(sent);
    while (message.msg_iovlen > 0 && rest >= message.msg_iov->iov_len) {
      rest -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + rest;
      message.msg_iov->iov_len -= rest;
    }
  }
}

bool Connection::ReceiveBytes(void* to, size_t count, bool may_end) {
  auto* at = static_cast<char*>(to);
  size_t have = 0;
  while (have < count) {
    const ssize_t got = recv(fd_.get(), at + have, count - have, 0);
    if (got == 0 && have == 0 && may_end) return false;
    if (got == 0) throw ConnectionLost(peer_ + " closed the connection in the middle of a frame");
    if (got < 0) {
      if (errno == EINTR) continue;
      throw ConnectionLost("cannot receive from " + peer_ + ": " + ErrnoText());
    }
    have += static_cast<size_t>(got);
  }
  return true;
}

std::optional<Frame> Connection::Receive() {
  FrameHeader header;
  if (!ReceiveBytes(&header, sizeof(header), true)) return std::nullopt;
  CheckHeader(header);
  if ((header.flags & kStopping) != 0) stop_->Request();
  Frame frame{static_cast<MessageType>(header.type), std::vector<std::byte>(header.payload_bytes)};
  static_cast<void>(ReceiveBytes(frame.payload.data(), frame.payload.size(), false));
  return frame;
}

Frame Connection::Call(const Frame& request) {
  Send(request);
  return Answer();
}

Frame Connection::Answer() {
  std::optional<Frame> answer = Receive();
  if (!answer) throw ConnectionLost(peer_ + " closed the connection without an answer");
  return std::move(*answer);
}

void Connection::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace embedding_job
