#include "job/identity_claim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/result.h"

namespace persia::agent {
namespace {

constexpr std::chrono::milliseconds kPause(20);

// FNV-1a, over each text and its end.
void Add(uint64_t& hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ 0xff) * 0x100000001b3;  // not a byte of UTF-8
}

// The same in each release, since agents of different releases must not claim one identity.
std::string SocketName(const Identity& identity, std::string_view place) {
  uint64_t hash = 0xcbf29ce484222325;
  Add(hash, place);
  Add(hash, identity.job);
  for (const auto& [name, value] : identity.labels) {
    Add(hash, name);
    Add(hash, value);
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::string("persia-metrics/identity/") + digits;
}

// 0, or an errno value.
int Bind(int fd, const std::string& name) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the zero byte before it makes the name abstract
  const auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + name.size());
  return bind(fd, reinterpret_cast<struct sockaddr*>(&address), size) == 0 ? 0 : errno;
}

}  // namespace

bool IdentityClaim::Take(const Identity& identity, std::string_view place, std::chrono::milliseconds patience) {
  std::string name = SocketName(identity, place);
  if (name == name_) return true;
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int error = fd.valid() ? Bind(fd.get(), name) : errno;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (error == EADDRINUSE && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    error = Bind(fd.get(), name);
  }
  if (error == EADDRINUSE) return false;
  if (error != 0)
    LogWarning("identity.claim", std::string("cannot detect other agents with the same identity: ") + std::strerror(error));
  name_ = std::move(name);
  socket_ = std::move(fd);
  return true;
}

}  // namespace persia::agent
