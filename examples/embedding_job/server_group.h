// All embedding servers, as the embedding worker asks them: at the same time.
//
// Thread safety: calls from several threads wait for each other.
#pragma once

#include <chrono>
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

  // Sends request s to server s, all before the first answer is awaited, so that the servers work side by side. REQUIRES: as
  // many requests as servers. Throws when one of them answers with an error, or not at all.
  std::vector<Frame> CallAll(const std::vector<Frame>& requests);
  // The job is over.
  void Goodbye();

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(connections_.size()); }

 private:
  std::mutex mutex_;
  std::vector<Connection> connections_;
};

}  // namespace embedding_job
