#include "socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace embedding_job {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const JobError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Address, ReadsWhatItWrites) {
  const struct {
    const char* text;
    const char* host;
    const char* port;
  } cases[] = {{"middleware:7001", "middleware", "7001"},
               {"127.0.0.1:1", "127.0.0.1", "1"},
               {"[::1]:80", "::1", "80"},
               {":7001", "", "7001"}};
  for (const auto& c : cases) {
    const Address address = Address::Parse(c.text);
    EXPECT_EQ(address.host, c.host);
    EXPECT_EQ(address.port, c.port);
    EXPECT_EQ(address.ToString(), c.text);
  }
}

TEST(Address, RefusesWhatIsNone) {
  for (const char* text : {"", "host", "host:", "::1:80"}) {
    EXPECT_THAT(Refusal([&] { Address::Parse(text); }), HasSubstr("\"" + std::string(text) + "\" is not an address")) << text;
  }
}

TEST(Listener, RefusesWhatItCannotListenOn) {
  for (const char* where : {"fd:", "fd:x", "fd:0x", "fd:12345", "203.0.113.1:80"}) {
    EXPECT_THAT(Refusal([&] { Listener listener(where); }), HasSubstr(where));
  }
}

TEST(Listener, TakesASocketThatListensAlready) {
  Listener first("127.0.0.1:0");
  const std::string address = first.address();
  const Listener second("fd:" + std::to_string(first.Release()));
  EXPECT_EQ(second.address(), address);
}

// Two ends of a connection.
class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    near_.emplace(Descriptor(fds[0]), "far", near_stop_);
    far_.emplace(Descriptor(fds[1]), "near", far_stop_);
  }
  void FarWrites(const void* bytes, size_t count) { ASSERT_EQ(write(far_->fd(), bytes, count), static_cast<ssize_t>(count)); }

  StopSignal near_stop_;
  StopSignal far_stop_;
  std::optional<Connection> near_;
  std::optional<Connection> far_;
};

TEST_F(ConnectionTest, CarriesFramesLargerThanItsBuffers) {
  Frame large{MessageType::kRows, std::vector<std::byte>(5'000'000)};
  for (size_t i = 0; i < large.payload.size(); ++i) {
    large.payload[i] = static_cast<std::byte>(i * 7 / 3);
  }
  std::thread sender([&] {
    far_->Send(large);
    far_->Send({MessageType::kAck});
  });
  const auto got = near_->Receive();
  const auto next = near_->Receive();
  sender.join();
  ASSERT_TRUE(got && next);
  EXPECT_EQ(got->payload, large.payload);
  EXPECT_EQ(next->type, MessageType::kAck);
}

TEST_F(ConnectionTest, AnEndBetweenFramesIsAnEnd) {
  far_->Send({MessageType::kAck});
  far_.reset();
  EXPECT_TRUE(near_->Receive());
  EXPECT_FALSE(near_->Receive());
}

TEST_F(ConnectionTest, AnEndWithinAFrameIsALoss) {
  const FrameHeader header = {.magic = kFrameMagic, .type = 2, .flags = 0, .payload_bytes = 100};
  FarWrites(&header, sizeof(header));
  FarWrites("short", 5);
  far_.reset();
  EXPECT_THROW(near_->Receive(), ConnectionLost);
}

TEST_F(ConnectionTest, AnotherProtocolIsRefused) {
  FarWrites("GET / HTTP/1.1\r\n\r\n", 18);
  EXPECT_THROW(near_->Receive(), WireError);
}

TEST_F(ConnectionTest, AStopSpreadsWithTheNextFrame) {
  far_->Send({MessageType::kAck});
  EXPECT_TRUE(near_->Receive());
  EXPECT_FALSE(near_stop_.Requested());
  far_stop_.Request();
  far_->Send({MessageType::kAck});
  EXPECT_TRUE(near_->Receive());
  EXPECT_TRUE(near_stop_.Requested());
}

TEST_F(ConnectionTest, ShutdownWakesTheReader) {
  std::thread reader([&] { EXPECT_FALSE(near_->Receive()); });
  near_->Shutdown();
  reader.join();
}

TEST(Connecting, ToNobodyFailsAtTheDeadlineAndNamesThePeer) {
  Listener listener("127.0.0.1:0");
  const Address address = Address::Parse(listener.address());
  close(listener.Release());
  StopSignal stop;
  const std::string error = Refusal([&] { Connection::Open(address, "embedding_worker", {}, steady_clock::now(), stop); });
  EXPECT_THAT(error, HasSubstr("cannot reach the embedding_worker at " + address.ToString()));
  EXPECT_THAT(error, HasSubstr("refused"));
}

TEST(Connecting, ToAnUnknownNameFailsAtTheDeadlineToo) {
  StopSignal stop;
  EXPECT_THAT(Refusal([&] {
                Connection::Open({"no-such-host.invalid", "1"}, "trainer", {}, steady_clock::now(), stop);
              }),
              HasSubstr("cannot resolve \"no-such-host.invalid:1\""));
}

TEST(Connecting, EndsWithAStop) {
  Listener listener("127.0.0.1:0");
  const Address address = Address::Parse(listener.address());
  close(listener.Release());
  StopSignal stop;
  std::thread stopper([&] { stop.Request(); });
  EXPECT_THROW(Connection::Open(address, "x", {}, steady_clock::now() + std::chrono::hours(1), stop), StoppedEarly);
  stopper.join();
}

// The peer comes up, and goes away without an answer, and comes up again.
TEST(Connecting, TriesAgainUntilThePeerAnswers) {
  StopSignal stop;
  Listener listener("127.0.0.1:0");
  std::thread peer([&] {
    { const Descriptor first(accept(listener.fd(), nullptr, nullptr)); }
    Connection second(Descriptor(accept(listener.fd(), nullptr, nullptr)), "client", stop);
    const auto hello = second.Receive();
    ASSERT_TRUE(hello);
    EXPECT_EQ(Decode<Hello>(*hello).role, "trainer");
    second.Send({MessageType::kAck});
  });
  Connection connection = Connection::Open(Address::Parse(listener.address()), "peer", {.role = "trainer", .dimension = 4},
                                           steady_clock::now() + std::chrono::hours(1), stop);
  peer.join();
  EXPECT_FALSE(connection.Receive());
}

}  // namespace
}  // namespace embedding_job
