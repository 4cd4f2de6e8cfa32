#include "server_group.h"

namespace embedding_job {

ServerGroup::ServerGroup(const std::vector<std::string>& addresses, const Hello& hello,
                         std::chrono::steady_clock::time_point deadline, StopSignal& stop) {
  for (const std::string& address : addresses)
    connections_.push_back(Connection::Open(Address::Parse(address), "embedding_server", hello, deadline, stop));
}

std::vector<Frame> ServerGroup::CallAll(const std::vector<Frame>& requests) {
  const std::lock_guard lock(mutex_);
  for (size_t server = 0; server < connections_.size(); ++server) connections_[server].Send(requests[server]);
  std::vector<Frame> answers;
  for (Connection& connection : connections_) answers.push_back(connection.Answer());
  return answers;
}

void ServerGroup::Goodbye() {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) connection.Send({MessageType::kGoodbye});
}

}  // namespace embedding_job
