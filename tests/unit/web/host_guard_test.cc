#include "web/web_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

// tests/e2e/test_web_hosts.py sends requests by all hosts to an agent.

ServerRequest To(const std::string& host) {
  return {.method = "GET", .path = "/", .query = "", .headers = {{"hOST", host}}, .body = ""};
}

int StatusOf(HostGuard& guard, const std::string& host) {
  const auto refusal = guard.RefuseHost(To(host), {});
  return refusal ? refusal->status : 200;
}

TEST(HostGuardTest, TheMachinesNamesAreLookedUpOnceAndOnlyForUnknownNames) {
  int lookups = 0;
  HostGuard guard([&] {
    ++lookups;
    return std::vector<std::string>{"node-1", "Node-1.gpu.example.com."};
  });
  EXPECT_EQ(StatusOf(guard, "127.0.0.1:19091"), 200);
  EXPECT_EQ(StatusOf(guard, "agent"), 200);
  EXPECT_EQ(lookups, 0);
  EXPECT_EQ(StatusOf(guard, "node-1.gpu.example.com:19091"), 200);
  EXPECT_EQ(StatusOf(guard, "NODE-1.gpu.example.com."), 200);
  EXPECT_EQ(StatusOf(guard, "node-2.gpu.example.com"), 421);
  EXPECT_EQ(StatusOf(guard, "x.node-1.gpu.example.com"), 421);
  EXPECT_EQ(lookups, 1);
}

TEST(HostGuardTest, ASlowResolverHoldsUpOneRequestAlone) {
  std::atomic<bool> looking = false;
  std::atomic<bool> answered = false;
  HostGuard guard([&] {
    looking = true;
    answered.wait(false);
    return std::vector<std::string>{"node.example.com"};
  });
  std::thread first([&] { EXPECT_EQ(StatusOf(guard, "node.example.com"), 200); });
  while (!looking) std::this_thread::yield();
  EXPECT_EQ(StatusOf(guard, "node.example.com"), 421);
  answered = true;
  answered.notify_all();
  first.join();
  EXPECT_EQ(StatusOf(guard, "node.example.com"), 200);
}

TEST(HostGuardTest, APostHasOneOrigin) {
  ServerRequest request{.method = "POST",
                        .path = "/-/reload",
                        .query = "",
                        .headers = {{"Host", "agent:1"}, {"Origin", "http://agent:1"}},
                        .body = ""};
  EXPECT_FALSE(RefuseOrigin(request, {}));
  request.headers.emplace_back("Origin", "http://evil.example");
  const auto refusal = RefuseOrigin(request, {});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 403);
}

}  // namespace
}  // namespace persia::agent
