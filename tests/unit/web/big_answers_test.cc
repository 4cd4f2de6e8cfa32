#include "web/held_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

TEST(BigAnswersTest, AreMadeAndHeldAFewAtATime) {
  BigAnswers big;
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::atomic<int> sent = 0;
  std::vector<std::thread> threads;
  constexpr int kAsking = BigAnswers::kAtATime + BigAnswers::kMostWaiting;
  for (int i = 0; i < kAsking; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        ServerResponse response = big.Answer([&] {
          most = std::max(most.load(), ++held);
          return ServerResponse{.status = 404, .body = "text"};
        });
        if (response.status == 404 && *response.shared_body == "text") ++sent;
        --held;
        response = {};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sent, kAsking * 50) << "none is refused";
  EXPECT_LE(most, BigAnswers::kAtATime);
}

TEST(BigAnswersTest, BeyondThoseThatWaitAreRefusedAndAnErrorKeepsNoPlace) {
  BigAnswers big;
  const auto fails = []() -> ServerResponse { throw std::string("made for the test"); };
  for (int i = 0; i < 2 * BigAnswers::kAtATime; ++i) EXPECT_THROW(big.Answer(fails), std::string);
  const auto text = [] { return ServerResponse{.body = "text"}; };
  std::vector<ServerResponse> held;
  for (int i = 0; i < BigAnswers::kAtATime; ++i) held.push_back(big.Answer(text));
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < BigAnswers::kMostWaiting + 3; ++i) {
    threads.emplace_back([&] { ++(big.Answer(text).status == 200 ? answered : refused); });
  }
  while (refused < 3) std::this_thread::yield();
  held.clear();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, BigAnswers::kMostWaiting);
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace persia::agent
