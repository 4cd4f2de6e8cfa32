#include "job/identity_claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

constexpr char kPlace[] = "gateway:9091";

// Of this test alone, also when the suite runs twice on one machine.
Identity Mine(const std::string& instance = "rep_0", const std::string& ip_addr = "10.0.0.1") {
  static const TemporaryDirectory directory;
  return {directory.path(), {{"instance", instance}, {"ip_addr", ip_addr}, {"role", "agent"}}};
}

TEST(IdentityClaimTest, OneAgentHoldsAnIdentity) {
  IdentityClaim first;
  EXPECT_TRUE(first.Take(Mine(), kPlace, 0ms));
  EXPECT_TRUE(first.Take(Mine(), kPlace, 0ms)) << "its own";
  IdentityClaim second;
  EXPECT_FALSE(second.Take(Mine(), kPlace, 0ms));
  EXPECT_TRUE(second.Take(Mine("rep_1"), kPlace, 0ms));
  EXPECT_TRUE(IdentityClaim().Take(Mine("rep_0", "10.0.0.2"), kPlace, 0ms));
  EXPECT_TRUE(IdentityClaim().Take(Mine(), "another_gateway:9091", 0ms)) << "they never meet";
}

TEST(IdentityClaimTest, LabelsAreToldApartWhereverTheyEnd) {
  const std::string job = Mine().job;
  IdentityClaim first;
  IdentityClaim second;
  EXPECT_TRUE(first.Take({job, {{"a", "bc"}}}, kPlace, 0ms));
  EXPECT_TRUE(second.Take({job, {{"ab", "c"}}}, kPlace, 0ms));
}

TEST(IdentityClaimTest, AnotherIdentityReleasesTheFormerOne) {
  IdentityClaim first;
  EXPECT_TRUE(first.Take(Mine(), kPlace, 0ms));
  EXPECT_TRUE(first.Take(Mine("rep_1"), kPlace, 0ms));
  EXPECT_TRUE(IdentityClaim().Take(Mine(), kPlace, 0ms));
}

TEST(IdentityClaimTest, ARefusedClaimKeepsTheFormerOne) {
  IdentityClaim first;
  IdentityClaim second;
  EXPECT_TRUE(first.Take(Mine("rep_0"), kPlace, 0ms));
  EXPECT_TRUE(second.Take(Mine("rep_1"), kPlace, 0ms));
  EXPECT_FALSE(second.Take(Mine("rep_0"), kPlace, 0ms));
  EXPECT_FALSE(IdentityClaim().Take(Mine("rep_1"), kPlace, 0ms));
}

TEST(IdentityClaimTest, AKilledHolderReleasesIt) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const Identity identity = Mine();
  const pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    IdentityClaim claim;
    const char taken = claim.Take(identity, kPlace, 0ms) ? 'y' : 'n';
    if (write(ready[1], &taken, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  IdentityClaim claim;
  EXPECT_FALSE(claim.Take(identity, kPlace, 0ms));
  EXPECT_FALSE(claim.Take(identity, kPlace, 30ms));
  kill(holder, SIGKILL);
  EXPECT_TRUE(claim.Take(identity, kPlace, 30s)) << "the next one waits for the kernel, and then has it";
  waitpid(holder, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace persia::agent
