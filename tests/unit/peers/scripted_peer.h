// An HTTP peer that answers each request as the test tells it, and may violate HTTP.
//
// Thread safety: any method, from any thread.
//
//   ScriptedPeer peer({Reply::Status(500), Reply::Silence(), Reply::Status(202)});  // the last one for all that follow
//   ... "127.0.0.1:" + std::to_string(peer.port()) ...
//   EXPECT_THAT(peer.requests(), SizeIs(3));
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "peers/socket.h"

namespace persia::agent {

struct Reply {
  std::string bytes;
  bool then_close = false;

  static Reply Status(int status, const std::string& body = "");
  // Nothing, on an open connection.
  static Reply Silence() { return {"", false}; }
  static Reply Close() { return {"", true}; }
  static Reply Raw(std::string bytes) { return {std::move(bytes), true}; }
};

class ScriptedPeer {
 public:
  explicit ScriptedPeer(std::vector<Reply> script);
  ~ScriptedPeer();
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Whole requests so far, as sent.
  [[nodiscard]] std::vector<std::string> requests() const;
  // Connections so far.
  [[nodiscard]] size_t connections() const;
  void WaitForRequests(size_t count);

 private:
  void Run();
  void Serve(const Socket& connection);
  // False if the peer is to stop.
  bool WaitFor(const Socket& socket) const;
  Reply Take(std::string request);

  const std::vector<Reply> script_;
  const Socket listener_ = Socket::Listen();
  const uint16_t port_ = listener_.port();
  int stop_[2] = {-1, -1};  // a pipe: readable when the peer is to stop

  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> requests_;  // guarded by mutex_
  size_t connections_ = 0;             // guarded by mutex_

  std::thread thread_;
};

}  // namespace persia::agent
