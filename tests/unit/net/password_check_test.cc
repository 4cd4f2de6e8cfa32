#include "net/password_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

std::string Parsed(std::string_view value) {
  const auto given = ParseBasicAuthorization(value);
  return given ? given->user + " | " + given->password : "none";
}

TEST(BasicAuthorization, IsUserAndPassword) {
  EXPECT_EQ(Parsed("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "Aladdin | open sesame");
  EXPECT_EQ(Parsed("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ"), "Aladdin | open sesame");
  EXPECT_EQ(Parsed("Basic YTpiOmM="), "a | b:c");
  EXPECT_EQ(Parsed("Basic Og=="), " | ");
}

TEST(BasicAuthorization, NothingElseIs) {
  for (const char* value : {"", "Basic", "Basic ", "Bearer YTpi", "Basic YWJj", "Basic YTp!", "Basic Y", "Basic YTpi YTpi",
                            "BasicYTpi", "Basic ===="}) {
    EXPECT_EQ(Parsed(value), "none") << value;
  }
}

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Verdict = PasswordCheck::Verdict;

// Of "secret", as `htpasswd -B` makes them, but for the cost of the first three.
constexpr char kSalted[] = "$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
const std::string kCheap = std::string("$2y") + kSalted;
const std::string kDear = "$2y$12$abcdefghijklmnopqrstuuT1Iwu6o8Wx7BoOyIMHfgVJq6JO/IJhW";

// Of the processor, by this thread: others may hold it up at any time.
std::chrono::duration<double> Spent() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::chrono::duration<double> TimeOf(PasswordCheck& check, const std::string& user, const std::string& password) {
  const auto begin = Spent();
  check.Check(user, password);
  return Spent() - begin;
}

TEST(PasswordCheck, LetsInACallerWithThePassword) {
  for (const char* kind : {"$2y", "$2a", "$2b"}) {
    PasswordCheck check({{"alice", std::string(kind) + kSalted}, {"bob", kCheap}});
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(check.Check("alice", "secret"), Verdict::kRight);
      EXPECT_EQ(check.Check("alice", "Secret"), Verdict::kWrong);
      EXPECT_EQ(check.Check("alice", ""), Verdict::kWrong);
      EXPECT_EQ(check.Check("carol", "secret"), Verdict::kWrong);
      EXPECT_EQ(check.Check("", ""), Verdict::kWrong);
    }
  }
}

TEST(PasswordCheck, PasswordsThatWouldBeCutOffAreWrong) {
  PasswordCheck check({{"alice", kCheap}});
  EXPECT_EQ(check.Check("alice", std::string("secret\0", 7)), Verdict::kWrong);
  EXPECT_EQ(check.Check("alice", std::string("secret\0more", 11)), Verdict::kWrong);
  EXPECT_EQ(check.Check("alice", std::string(513, 'x')), Verdict::kWrong);
}

TEST(PasswordCheck, APasswordThatWasRightIsCheapFromThenOn) {
  PasswordCheck check({{"alice", kDear}});
  const auto first = TimeOf(check, "alice", "secret");
  EXPECT_LT(TimeOf(check, "alice", "secret") * 4, first);
  EXPECT_EQ(check.Check("alice", "secret"), Verdict::kRight);
  EXPECT_GT(TimeOf(check, "alice", "wrong") * 4, first);
}

TEST(PasswordCheck, LookingAtADearHashIsCheap) {
  PasswordCheck check({{"alice", kDear}});
  const auto begin = Spent();
  EXPECT_THAT(PasswordCheck::WhyUnusable(kDear), IsEmpty());
  const auto took = Spent() - begin;
  EXPECT_LT(took * 4, TimeOf(check, "alice", "wrong"));
}

TEST(PasswordCheck, AStrangerCostsAsMuchAsAUser) {
  PasswordCheck check({{"alice", kDear}});
  EXPECT_GT(TimeOf(check, "carol", "secret") * 4, TimeOf(check, "alice", "wrong"));
}

TEST(PasswordCheck, AFloodIsTurnedAwayAndHoldsUpNobodyWhoCameBefore) {
  PasswordCheck check({{"alice", kDear}});
  const auto first = TimeOf(check, "alice", "secret");
  std::atomic<int> busy = 0;
  std::vector<std::jthread> flood;
  for (int i = 0; i < 40; ++i) {
    flood.emplace_back([&] { busy += check.Check("carol", "wrong") == Verdict::kBusy ? 1 : 0; });
  }
  while (busy == 0) std::this_thread::yield();
  EXPECT_LT(TimeOf(check, "alice", "secret") * 4, first);  // a caller that waits computes as well
  EXPECT_EQ(check.Check("alice", "secret"), Verdict::kRight);
  flood.clear();
  EXPECT_GE(busy, 6);  // two at work, eight waiting, and some that come when one has left
}

// Fewer callers than may wait: only the time turns one away.
TEST(PasswordCheck, ACallerThatWaitsTooLongIsTurnedAway) {
  PasswordCheck check({{"alice", kDear}}, std::chrono::milliseconds(1));
  std::vector<std::jthread> computing;
  for (int i = 0; i < 2; ++i) {
    computing.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) check.Check("carol", "wrong");
    });
  }
  while (check.Check("carol", "wrong") != Verdict::kBusy) {
  }
}

TEST(PasswordCheck, HashesThatCannotBeUsedAreToldApartAndNotRepeated) {
  EXPECT_THAT(PasswordCheck::WhyUnusable(kCheap), IsEmpty());
  EXPECT_THAT(PasswordCheck::WhyUnusable(kDear), IsEmpty());
  EXPECT_THAT(PasswordCheck::WhyUnusable(std::string("$2y$15") + kDear.substr(6)), HasSubstr("of cost 15"));
  const std::string unusable[] = {"",
                                  "secret",
                                  "$1$abcdefgh$irWbblnpmw.5z7wgBnprh0",
                                  std::string("$2x") + kSalted,
                                  kCheap + "x",
                                  kCheap.substr(0, 59),
                                  std::string("$2y$03") + kDear.substr(6),
                                  std::string("$2y$1x") + kDear.substr(6),
                                  kCheap.substr(0, 59) + "*"};
  for (const std::string& hash : unusable) {
    EXPECT_THAT(PasswordCheck::WhyUnusable(hash), HasSubstr("is not a bcrypt hash")) << hash;
    EXPECT_THAT(PasswordCheck::WhyUnusable(hash + "!"), Not(HasSubstr(hash + "!")));
  }
}

}  // namespace
}  // namespace persia::agent
