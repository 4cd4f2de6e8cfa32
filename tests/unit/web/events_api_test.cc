#include "web/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/saved_event.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;

std::string ExpectedAnswer(const std::vector<JobEvent>& events) {
  std::string body = "{\"events\": [";
  for (size_t i = 0; i < events.size(); ++i) body += (i > 0 ? ",\n" : "\n") + EventJson(events[i]);
  return body + "\n]}\n";
}

TEST(EventsApi, AnswersWithTheNewestByTimeTypeAndNumber) {
  EventLog log({.max_kept = 3});
  log.Add(std::vector{SavedEvent(1), SavedEvent(2, "a", "x"), SavedEvent(3), SavedEvent(4, "b", "x")});
  const auto answer = [&](const std::string& query) { return AnswerEvents(query, log).body; };
  EXPECT_EQ(answer(""), ExpectedAnswer({SavedEvent(2, "a", "x"), SavedEvent(3), SavedEvent(4, "b", "x")}));
  EXPECT_EQ(answer("type=x"), ExpectedAnswer({SavedEvent(2, "a", "x"), SavedEvent(4, "b", "x")}));
  EXPECT_EQ(answer("since=2&type=x"), ExpectedAnswer({SavedEvent(4, "b", "x")}));
  EXPECT_EQ(answer("limit=1"), ExpectedAnswer({SavedEvent(4, "b", "x")}));
  EXPECT_EQ(answer("type=no%20such+one"), ExpectedAnswer({}));
}

TEST(EventsApi, RefusesAMalformedQuery) {
  const EventLog log({});
  for (const auto& [query, error] :
       {std::pair("since=yesterday", R"(since: \"yesterday\")"), std::pair("limit=0", R"(limit: \"0\")"),
        std::pair("limit=1001", "from 1 to 1000"), std::pair("sinc=3", R"(unknown parameter \"sinc\")")}) {
    const JsonAnswer answer = AnswerEvents(query, log);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_THAT(answer.body, HasSubstr(error));
  }
}

}  // namespace
}  // namespace persia::agent
