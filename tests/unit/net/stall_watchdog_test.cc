// http_server_test.cc has the watchdog at work.
#include "net/stall_watchdog.h"

#include <gtest/gtest.h>

#include <chrono>

namespace persia::agent {
namespace {

TEST(StallWatchdog, AfterASecondAClientMustReceiveAMebibytePerSecond) {
  EXPECT_LE(StallWatchdog::LeastReceived(std::chrono::milliseconds(500)), 0);
  EXPECT_EQ(StallWatchdog::LeastReceived(std::chrono::seconds(1)), 0);
  EXPECT_EQ(StallWatchdog::LeastReceived(std::chrono::seconds(3)), 2 << 20);
}

}  // namespace
}  // namespace persia::agent
