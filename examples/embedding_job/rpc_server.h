// A server: accepts connections, and gives each a thread, which passes its requests to a handler one by one.
//
// It ends with the job, when all of the job's connections have said goodbye. A peer that closes its connection without a
// goodbye has failed, and so has the job.
#pragma once

#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "socket.h"
#include "stop_signal.h"
#include "wire.h"

namespace embedding_job {

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // The answer to a request. An exception is sent to the peer as a kError, and ends the job. Called from several threads
  // concurrently, but in order for each connection.
  virtual Frame Handle(const Frame& request) = 0;
  // A stop is requested.
  virtual void StopRequested() {}
  // The job has failed: threads that wait inside Handle must return.
  virtual void Abort() {}
};

class RpcServer {
 public:
  // `connections`: the number that must say goodbye. `dimension`: the value that a peer's hello must have. All references must
  // outlive it.
  RpcServer(Listener& listener, RequestHandler& handler, StopSignal& stop, int connections, uint32_t dimension);

  // Serves until the job ends, or a stop is requested while there is no connection. Throws the first failure.
  void Run();

 private:
  struct Client {
    Connection connection;
    std::thread thread = {};
  };

  void Accept();
  void ServeClient(Connection& connection);
  // Serves one connection until it ends. True: it said goodbye.
  bool Converse(Connection& connection);
  // Whether one more connection is expected.
  bool Admit();
  void Dismiss();
  void Fail(std::exception_ptr error);
  void Wake();

  Listener& listener_;
  RequestHandler& handler_;
  StopSignal& stop_;
  const int connections_;
  const uint32_t dimension_;
  const Descriptor wake_;  // an eventfd that wakes the accepting thread

  std::mutex mutex_;
  // Guarded by mutex_:
  std::list<Client> clients_;  // grows only, until Run ends
  int open_ = 0;
  int admitted_ = 0;
  int goodbyes_ = 0;
  std::exception_ptr failure_;
};

}  // namespace embedding_job
