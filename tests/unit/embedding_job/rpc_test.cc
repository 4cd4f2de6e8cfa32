#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "channel.h"
#include "rpc_server.h"
#include "server_group.h"

namespace embedding_job {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kRpcDimension = 4;

// Answers a lookup with as many rows, and fails on an update.
class EchoHandler : public RequestHandler {
 public:
  Frame Handle(const Frame& request) override {
    if (request.type == MessageType::kUpdate) {
      throw JobError("updates do not work here");
    }
    return Encode(Rows{std::vector<float>(Decode<Lookup>(request).ids.size())});
  }
  void StopRequested() override { stopped.set_value(); }

  std::promise<void> stopped;
};

class RpcTest : public testing::Test {
 protected:
  void Serve(int connections) {
    ended_ = std::async(std::launch::async, [this, connections] {
      RpcServer(listener_, handler_, server_stop_, connections, kRpcDimension).Run();
    });
  }
  Connection Connect(uint32_t dimension = kRpcDimension) {
    return Connection::Open(Address::Parse(listener_.address()), "server", {.role = "tester", .dimension = dimension},
                            steady_clock::now() + std::chrono::minutes(1), client_stop_);
  }
  // The server learns in its own time that a peer has left.
  Connection ConnectOnceThereIsRoom() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      try {
        return Connect();
      } catch (const JobError&) {
        if (std::chrono::steady_clock::now() > deadline) {
          throw;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  static size_t Look(Connection& connection, size_t ids) {
    return Decode<Rows>(connection.Call(Encode(Lookup{kRpcDimension, std::vector<uint64_t>(ids)}))).values.size();
  }
  // "" if the server ended in order.
  std::string End() {
    try {
      ended_.get();
    } catch (const JobError& error) {
      return error.what();
    }
    return "";
  }

  Listener listener_{"127.0.0.1:0"};
  StopSignal server_stop_;
  StopSignal client_stop_;
  EchoHandler handler_;
  std::future<void> ended_;
};

TEST_F(RpcTest, EndsWhenAllHaveSaidGoodbye) {
  Serve(2);
  Connection first = Connect();
  EXPECT_EQ(Look(first, 3), 3U);
  first.Send({MessageType::kGoodbye});
  Connection second = Connect();
  EXPECT_EQ(Look(second, 5), 5U);
  second.Send({MessageType::kGoodbye});
  EXPECT_EQ(End(), "");
}

TEST_F(RpcTest, APeerThatGoesWithoutGoodbyeFailsTheJob) {
  Serve(2);
  Connection other = Connect();
  {
    Connection lost = Connect();
    Look(lost, 1);
  }
  EXPECT_THAT(End(), HasSubstr("the tester closed the connection before the job's end"));
  // The others learn of it.
  EXPECT_FALSE(other.Receive());
}

TEST_F(RpcTest, AFailedRequestIsAnsweredAndFailsTheJob) {
  Serve(1);
  Connection connection = Connect();
  try {
    Expect(connection.Call(Encode(Update{kRpcDimension, {}, {}})), MessageType::kAck);
    FAIL();
  } catch (const JobError& error) {
    EXPECT_THAT(error.what(), HasSubstr("updates do not work here"));
  }
  EXPECT_THAT(End(), HasSubstr("updates do not work here"));
}

TEST_F(RpcTest, StrangersDoNotMatter) {
  Serve(1);
  { const Connection only_hello = Connect(); }
  {
    // Another protocol.
    sockaddr_storage to = {};
    socklen_t size = sizeof(to);
    ASSERT_EQ(getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&to), &size), 0);
    const Descriptor http(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(http.get(), reinterpret_cast<sockaddr*>(&to), size), 0);
    ASSERT_EQ(send(http.get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    char byte = 0;
    EXPECT_LE(recv(http.get(), &byte, 1, 0), 0);
  }
  Connection connection = ConnectOnceThereIsRoom();
  EXPECT_EQ(Look(connection, 3), 3U);
  connection.Send({MessageType::kGoodbye});
  EXPECT_EQ(End(), "");
}

TEST_F(RpcTest, RefusesMoreThanAJobHas) {
  Serve(1);
  Connection connection = Connect();
  EXPECT_EQ(Look(connection, 1), 1U);
  EXPECT_THROW(Connect(), JobError);
  connection.Send({MessageType::kGoodbye});
  EXPECT_EQ(End(), "");
}

TEST_F(RpcTest, RefusesAnotherDimension) {
  Serve(1);
  EXPECT_THROW(Connect(8), JobError);
  EXPECT_THAT(End(), HasSubstr("--dimension differs: 8 at the tester, 4 here"));
}

TEST_F(RpcTest, AStopBeforeAnyoneConnectsEndsIt) {
  Serve(2);
  server_stop_.Request();
  EXPECT_EQ(End(), "");
}

TEST_F(RpcTest, AStopWaitsForThoseWhoAreConnected) {
  Serve(2);
  Connection connection = Connect();
  EXPECT_EQ(Look(connection, 1), 1U);
  server_stop_.Request();
  handler_.stopped.get_future().get();
  EXPECT_EQ(Look(connection, 2), 2U);
  EXPECT_TRUE(client_stop_.Requested());
  connection.Send({MessageType::kGoodbye});
  EXPECT_EQ(End(), "");
}

TEST_F(RpcTest, AGroupAsksAllServers) {
  Listener other_listener("127.0.0.1:0");
  EchoHandler other_handler;
  auto other =
      std::async(std::launch::async, [&] { RpcServer(other_listener, other_handler, server_stop_, 1, kRpcDimension).Run(); });
  Serve(1);
  ServerGroup group({listener_.address(), other_listener.address()}, {.role = "tester", .dimension = kRpcDimension},
                    steady_clock::now() + std::chrono::minutes(1), client_stop_);
  std::vector<size_t> sizes;
  for (const Frame& answer : group.CallAll({Encode(Lookup{kRpcDimension, {1}}), Encode(Lookup{kRpcDimension, {1, 2}})})) {
    sizes.push_back(Decode<Rows>(answer).values.size());
  }
  EXPECT_THAT(sizes, ElementsAre(1, 2));
  group.Goodbye();
  EXPECT_EQ(End(), "");
  other.get();
}

TEST(Channel, GivesOutWhatIsInsideAfterItsEnd) {
  std::vector<size_t> sizes;
  Channel<int> channel(2, [&](size_t size) { sizes.push_back(size); });
  EXPECT_TRUE(channel.Push(1));
  EXPECT_TRUE(channel.Push(2));
  channel.Close();
  EXPECT_FALSE(channel.Push(3));
  EXPECT_EQ(channel.Pop(), 1);
  EXPECT_EQ(channel.Pop(), 2);
  EXPECT_EQ(channel.Pop(), std::nullopt);
  EXPECT_THAT(sizes, ElementsAre(1, 2, 1, 0));
}

TEST(Channel, HoldsBackWhoIsTooFast) {
  size_t most = 0;
  Channel<int> channel(3, [&](size_t size) { most = std::max(most, size); });
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      channel.Push(i);
    }
    channel.Close();
  });
  int expected = 0;
  while (const std::optional<int> got = channel.Pop()) {
    EXPECT_EQ(*got, expected++);
  }
  writer.join();
  EXPECT_EQ(expected, 1000);
  EXPECT_LE(most, 3U);
}

}  // namespace
}  // namespace embedding_job
