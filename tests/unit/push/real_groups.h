// For tests of groups on real gateways: ranks, and a gateway's values of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "captured_log.h"
#include "peers/real_gateway.h"
#include "push/snapshots.h"

namespace persia::agent {

inline Identity Rank(int replica, const std::string& ip = "10.0.0.1") {
  return {"job", {{"instance", "rep_" + std::to_string(replica)}, {"ip_addr", ip}, {"role", "trainer"}}};
}
// A gauge x = 1 for each identity.
inline Snapshot Of(const std::vector<Identity>& identities, double value = 1) {
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < identities.size(); ++i) samples.push_back({"x", MetricType::kGauge, value, i});
  return Snap(identities, samples);
}

class RealGroupsTest : public ::testing::Test {
 protected:
  // The lines of x, once there are this many: the gateway answers a DELETE before it has done it.
  static std::vector<std::string> Lines(const RealGateway& gateway, size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<std::string> lines;
    do {
      lines = gateway.Lines("x{");
    } while (lines.size() != count && std::chrono::steady_clock::now() < deadline);
    return lines;
  }
  // Their instances, in the gateway's order.
  static std::vector<std::string> Instances(const RealGateway& gateway, size_t count) {
    std::vector<std::string> instances;
    for (const std::string& line : Lines(gateway, count)) {
      const size_t begin = line.find("instance=\"") + 10;
      instances.push_back(line.substr(begin, line.find('"', begin) - begin));
    }
    return instances;
  }

  CapturedLog log_;
  RealGateway gateway_;
};

}  // namespace persia::agent
