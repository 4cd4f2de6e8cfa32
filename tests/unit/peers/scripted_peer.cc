#include "peers/scripted_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace persia::agent {
namespace {

// The first whole request of `received`, which is taken off it.
std::optional<std::string> TakeRequest(std::string& received) {
  const size_t head = received.find("\r\n\r\n");
  if (head == std::string::npos) return std::nullopt;
  size_t size = head + 4;
  const size_t length = received.find("Content-Length: ");
  if (length < head) size += std::stoul(received.substr(length + 16, 20));
  if (received.size() < size) return std::nullopt;
  std::string request = received.substr(0, size);
  received.erase(0, size);
  return request;
}

}  // namespace

Reply Reply::Status(int status, const std::string& body) {
  return {
      "HTTP/1.1 " + std::to_string(status) + " Scripted\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
      false};
}

ScriptedPeer::ScriptedPeer(std::vector<Reply> script) : script_(std::move(script)) {
  if (pipe2(stop_, O_CLOEXEC) != 0) std::abort();
  thread_ = std::thread(&ScriptedPeer::Run, this);
}

ScriptedPeer::~ScriptedPeer() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
}

std::vector<std::string> ScriptedPeer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

size_t ScriptedPeer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

void ScriptedPeer::WaitForRequests(size_t count) {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return requests_.size() >= count; });
}

bool ScriptedPeer::WaitFor(const Socket& socket) const {
  pollfd waits[2] = {{socket.fd(), POLLIN, 0}, {stop_[0], POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
  }
  return waits[1].revents == 0;
}

void ScriptedPeer::Run() {
  while (WaitFor(listener_)) {
    const Socket connection(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    {
      const std::lock_guard lock(mutex_);
      ++connections_;
    }
    Serve(connection);
  }
}

void ScriptedPeer::Serve(const Socket& connection) {
  std::string received;
  char buffer[65536];
  while (WaitFor(connection)) {
    const ssize_t got = recv(connection.fd(), buffer, sizeof(buffer), 0);
    if (got <= 0) return;
    received.append(buffer, static_cast<size_t>(got));
    while (std::optional<std::string> request = TakeRequest(received)) {
      const Reply reply = Take(std::move(*request));
      connection.Send(reply.bytes);
      if (reply.then_close) return;
    }
  }
}

Reply ScriptedPeer::Take(std::string request) {
  const std::lock_guard lock(mutex_);
  const Reply reply = script_[std::min(requests_.size(), script_.size() - 1)];
  requests_.push_back(std::move(request));
  came_.notify_all();
  return reply;
}

}  // namespace persia::agent
