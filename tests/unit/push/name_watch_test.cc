#include "push/name_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <string>
#include <utility>

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

TEST(NameWatchTest, LooksUpUntilTheHostHasAnAddress) {
  std::atomic<int> lookups = 0;
  std::atomic<int> misses = 0;
  std::binary_semaphore known(0);
  const NameWatch watch("gateway",
                        {.interval = 1ms,
                         .has_address =
                             [&](const std::string& host) {
                               EXPECT_EQ(host, "gateway");
                               return ++lookups == 3;
                             }},
                        [&](bool is_known) { is_known ? known.release() : void(++misses); });
  known.acquire();
  EXPECT_EQ(misses, 2);
  EXPECT_EQ(lookups, 3);
}

TEST(NameWatchTest, NothingWaitsForAResolverThatHangs) {
  std::binary_semaphore asked(0);
  std::binary_semaphore go_on(0);
  std::binary_semaphore answered(0);
  {
    const NameWatch watch("gateway",
                          {.has_address =
                               [&](const std::string&) {
                                 asked.release();
                                 go_on.acquire();
                                 answered.release();
                                 return true;
                               }},
                          [](bool) { ADD_FAILURE() << "after the end"; });
    asked.acquire();
  }
  go_on.release();
  answered.acquire();  // the resolver is the last to need the semaphores
}

TEST(NameWatchTest, TheSystemsResolverAnswers) {
  for (const auto& [host, has_address] : {std::pair("127.0.0.1", true), std::pair("no_such_host.invalid", false)}) {
    EXPECT_EQ(NameWatch::Options().has_address(host), has_address) << host;
  }
}

}  // namespace
}  // namespace persia::agent
