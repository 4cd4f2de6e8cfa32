// The embedding worker's connections to all embedding servers, which it queries concurrently.
//
// Thread safety: concurrent calls are serialized.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "messages.h"
#include "socket.h"
#include "stop_signal.h"
#include "wire.h"

namespace embedding_job {

class ServerGroup {
 public:
  // Connects to all of them. Throws as Connection::Open does.
  ServerGroup(const std::vector<std::string>& addresses, const Hello& hello, std::chrono::steady_clock::time_point deadline,
              StopSignal& stop);

  // Sends request s to server s, all before it waits for the first answer, so that the servers work concurrently. REQUIRES: as
  // many requests as servers. Throws if a server answers with an error, or not at all.
  std::vector<Frame> CallAll(const std::vector<Frame>& requests);
  // Says goodbye to all servers.
  void Goodbye();

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(connections_.size()); }

 private:
  std::mutex mutex_;
  std::vector<Connection> connections_;
};

}  // namespace embedding_job
