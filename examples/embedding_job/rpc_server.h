// The side that answers: accepts connections and gives each a thread, which hands its requests to a handler one by one.
//
// It ends by itself, when the job does: as many connections have said goodbye as a job has. A peer that goes away without a
// goodbye has failed, and the job with it.
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
  // The answer to a request. What it throws is sent to the peer as a kError, and ends the job. Called from many threads at a
  // time, but in order for one connection.
  virtual Frame Handle(const Frame& request) = 0;
  // A stop is requested.
  virtual void StopRequested() {}
  // The job has failed: whoever waits inside Handle must come back.
  virtual void Abort() {}
};

class RpcServer {
 public:
  // `connections`: how many must say goodbye. `dimension`: what a peer's hello must say. All references must outlive it.
  RpcServer(Listener& listener, RequestHandler& handler, StopSignal& stop, int connections, uint32_t dimension);

  // Serves until the end of the job, or until a stop is requested while nobody is connected. Throws what went wrong first.
  void Run();

 private:
  struct Client {
    Connection connection;
    std::thread thread = {};
  };

  void Accept();
  void ServeClient(Connection& connection);
  // One connection, until its end. True: it said goodbye.
  bool Converse(Connection& connection);
  // Whether one more is wanted.
  bool Admit();
  void Dismiss();
  void Fail(std::exception_ptr error);
  void Wake();

  Listener& listener_;
  RequestHandler& handler_;
  StopSignal& stop_;
  const int connections_;
  const uint32_t dimension_;
  const Descriptor wake_;  // an eventfd: something changed that the accepting thread looks at

  std::mutex mutex_;
  // Guarded by mutex_:
  std::list<Client> clients_;  // grows only, until Run ends
  int open_ = 0;
  int admitted_ = 0;
  int goodbyes_ = 0;
  std::exception_ptr failure_;
};

}  // namespace embedding_job
