// Who listens on a port of this host.
//
// Thread safety: a pure function of /proc.
#pragma once

#include <cstdint>
#include <string>

namespace persia::agent {

// "pid 4711 (python3)"; "another process" if it is another user's or in another container, so that this process cannot see it.
[[nodiscard]] std::string HolderOf(uint16_t port);

}  // namespace persia::agent
