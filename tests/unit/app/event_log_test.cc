#include "app/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobEvent Event(uint64_t unix_ms, const std::string& name = "saved", const std::string& type = "my_app") {
  return {.unix_ms = unix_ms,
          .type = type,
          .name = name,
          .metadata = {},
          .left_out = 0,
          .identity = {"dlrm", {{"role", "trainer"}}},
          .pid = 7};
}

class EventLogTest : public ::testing::Test {
 protected:
  EventLog& Open(EventLog::Options options = {}) {
    options.warn = [this](const std::string& message) { warnings_.push_back(message); };
    log_ = std::make_unique<EventLog>(std::move(options));
    return *log_;
  }
  static std::vector<std::string> Lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "events.jsonl";
  std::unique_ptr<EventLog> log_;
  std::vector<std::string> warnings_;
};

TEST_F(EventLogTest, AnEventIsALineOfJson) {
  JobEvent event = Event(5);
  event.metadata = {{"none", {}}, {"yes", true}, {"n", int64_t{-3}}, {"x", 0.5}, {"nan", std::nan("")}, {"t", "a \"b\"\n"}};
  event.left_out = 2;
  EXPECT_EQ(EventJson(event),
            R"({"timestamp": 5, "type": "my_app", "name": "saved", "metadata": {"none": null, "yes": true, "n": -3, "x": 0.5, )"
            R"("nan": "NaN", "t": "a \"b\"\n"}, "metadata_left_out": 2, "role": "trainer", "pid": 7})");
}

TEST_F(EventLogTest, AllOfThemAreWrittenOneAfterTheOther) {
  Open({.file = file_}).Add(std::vector{Event(1), Event(2)});
  log_->Add(std::vector{Event(3)});
  Open({.file = file_}).Add(std::vector{Event(4)});  // another agent
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(Event(1)), EventJson(Event(2)), EventJson(Event(3)), EventJson(Event(4))));
}

TEST_F(EventLogTest, AFullFileIsRenamedAndNoLineIsLostInIt) {
  const size_t bytes = EventJson(Event(1)).size() + 1;
  Open({.file = file_, .max_file_bytes = 2 * bytes});
  for (uint64_t i = 1; i <= 5; ++i) log_->Add(std::vector{Event(i)});
  EXPECT_THAT(Lines(file_ + ".1"), ElementsAre(EventJson(Event(3)), EventJson(Event(4))));
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(Event(5))));
}

TEST_F(EventLogTest, WhatCannotBeWrittenIsSaidOnceAndTriedAgain) {
  const std::string later = directory_ / "later";
  Open({.file = later + "/events.jsonl"}).Add(std::vector{Event(1), Event(2)});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("No such file or directory")));
  std::filesystem::create_directory(later);
  log_->Add(std::vector{Event(3)});
  EXPECT_THAT(Lines(later + "/events.jsonl"), ElementsAre(EventJson(Event(3))));
  EXPECT_EQ(warnings_.size(), 1U);
}

// As stdout may be.
TEST_F(EventLogTest, APipeThatNobodyReadsHoldsNobodyUp) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  Open({.file = file_});
  for (int i = 0; i < 100; ++i) log_->Add(std::vector<JobEvent>(100, Event(1)));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("whoever reads it does not keep up")));
  std::string text(1 << 20, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(read(reader, text.data(), text.size()), 0)));
  ASSERT_TRUE(text.ends_with("\n")) << "lines are whole";
  EXPECT_EQ(text.substr(0, text.find('\n')), EventJson(Event(1)));
  log_->Add(std::vector{Event(2)});
  close(reader);
  log_->Add(std::vector{Event(3)});  // SIGPIPE would end the test, unless whoever runs it ignores that
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("whoever reads it"), HasSubstr("whoever reads it")));
}

TEST_F(EventLogTest, TheNewestAreToBeHadByTimeTypeAndNumber) {
  Open({.kept = 3}).Add(std::vector{Event(1), Event(2, "a", "x"), Event(3), Event(4, "b", "x")});
  const auto answer = [&](const std::string& query) { return log_->Answer(EventLog::ParseQuery(query).value()); };
  const auto all = [](const std::vector<JobEvent>& events) {
    std::string out = "{\"events\": [";
    for (size_t i = 0; i < events.size(); ++i) out += (i > 0 ? ",\n" : "\n") + EventJson(events[i]);
    return out + "\n]}\n";
  };
  EXPECT_EQ(answer(""), all({Event(2, "a", "x"), Event(3), Event(4, "b", "x")}));
  EXPECT_EQ(answer("type=x"), all({Event(2, "a", "x"), Event(4, "b", "x")}));
  EXPECT_EQ(answer("since=2&type=x"), all({Event(4, "b", "x")}));
  EXPECT_EQ(answer("limit=1"), all({Event(4, "b", "x")}));
  EXPECT_EQ(answer("type=no%20such+one"), all({}));
}

TEST_F(EventLogTest, AQueryThatIsNoneIsRefused) {
  for (const auto& [query, error] :
       {std::pair("since=yesterday", "since: \"yesterday\""), std::pair("limit=0", "limit: \"0\""),
        std::pair("limit=1001", "from 1 to 1000"), std::pair("sinc=3", "unknown parameter \"sinc\"")}) {
    const auto parsed = EventLog::ParseQuery(query);
    ASSERT_FALSE(parsed.ok()) << query;
    EXPECT_THAT(parsed.error(), HasSubstr(error));
  }
}

}  // namespace
}  // namespace persia::agent
