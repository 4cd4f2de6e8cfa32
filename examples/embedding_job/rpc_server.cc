#include "rpc_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace embedding_job {

RpcServer::RpcServer(Listener& listener, RequestHandler& handler, StopSignal& stop, int connections, uint32_t dimension)
    : listener_(listener),
      handler_(handler),
      stop_(stop),
      connections_(connections),
      dimension_(dimension),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void RpcServer::Run() {
  bool stop_told = false;
  while (true) {
    pollfd waited[] = {{.fd = listener_.fd(), .events = POLLIN, .revents = 0},
                       {.fd = wake_.get(), .events = POLLIN, .revents = 0},
                       {.fd = stop_told ? -1 : stop_.fd(), .events = POLLIN, .revents = 0}};
    if (poll(waited, 3, -1) < 0 && errno != EINTR)
      Fail(std::make_exception_ptr(JobError(std::string("poll: ") + std::strerror(errno))));
    if (waited[1].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    }
    // Before the stop is checked: a peer in the listener's queue has connected in time.
    if (waited[0].revents != 0) Accept();
    if (stop_.Requested() && !stop_told) {
      stop_told = true;
      handler_.StopRequested();
    }
    const std::lock_guard lock(mutex_);
    if (failure_ || goodbyes_ == connections_ || (stop_.Requested() && open_ == 0)) break;
  }
  // Only this thread changes the list.
  for (Client& client : clients_) client.thread.join();
  clients_.clear();
  if (failure_) std::rethrow_exception(failure_);
}

void RpcServer::Accept() {
  Descriptor fd(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.get() < 0) {
    // The peer may have closed the connection; any other error shows at the next call.
    return;
  }
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  Client& client = clients_.emplace_back(Client{Connection(std::move(fd), "a peer", stop_)});
  ++open_;
  client.thread = std::thread([this, &client] { ServeClient(client.connection); });
}

void RpcServer::ServeClient(Connection& connection) {
  bool goodbye = false;
  try {
    goodbye = Converse(connection);
  } catch (...) {
    Fail(std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  --open_;
  goodbyes_ += goodbye ? 1 : 0;
  // So that the peer sees the end now, not when the last connection ends.
  connection.Shutdown();
  Wake();
}

bool RpcServer::Converse(Connection& connection) {
  Hello hello;
  try {
    std::optional<Frame> first = connection.Receive();
    if (!first) return false;  // a port check
    hello = Decode<Hello>(*first);
  } catch (const JobError&) {
    return false;  // not one of our roles: no reason to end the job
  }
  if (hello.dimension != 0 && hello.dimension != dimension_) {
    const std::string text = "--dimension differs: " + std::to_string(hello.dimension) + " at the " + hello.role + ", " +
                             std::to_string(dimension_) + " here";
    connection.Send(EncodeError(text));
    throw JobError(text);
  }
  if (!Admit()) {
    connection.Send(
        EncodeError("this job has all the roles that it needs: one data loader, one embedding worker, one trainer"));
    return false;
  }
  connection.Send({MessageType::kAck});
  for (bool asked = false;; asked = true) {
    std::optional<Frame> request = connection.Receive();
    if (!request) {
      if (!asked) {
        Dismiss();  // the peer was stopped while it connected to the others
        return false;
      }
      throw ConnectionLost("the " + hello.role + " closed the connection before the job's end");
    }
    if (request->type == MessageType::kGoodbye) return true;
    try {
      connection.Send(handler_.Handle(*request));
    } catch (const ConnectionLost&) {
      throw;
    } catch (const std::exception& error) {
      connection.Send(EncodeError(error.what()));
      throw;
    }
  }
}

bool RpcServer::Admit() {
  const std::lock_guard lock(mutex_);
  if (admitted_ == connections_) return false;
  ++admitted_;
  return true;
}

void RpcServer::Dismiss() {
  const std::lock_guard lock(mutex_);
  --admitted_;
}

void RpcServer::Fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;  // later failures follow from the first one
    failure_ = std::move(error);
    for (Client& client : clients_) client.connection.Shutdown();
    Wake();
  }
  handler_.Abort();
}

void RpcServer::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

}  // namespace embedding_job
