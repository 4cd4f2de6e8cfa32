#include "job/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/saved_event.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  JobEvent event = SavedEvent(5);
  event.metadata = {{"none", {}}, {"yes", true}, {"n", int64_t{-3}}, {"x", 0.5}, {"nan", std::nan("")}, {"t", "a \"b\"\n"}};
  event.left_out = 2;
  EXPECT_EQ(EventJson(event),
            R"({"timestamp": 5, "type": "my_app", "name": "saved", "metadata": {"none": null, "yes": true, "n": -3, "x": 0.5, )"
            R"("nan": "NaN", "t": "a \"b\"\n"}, "metadata_left_out": 2, "role": "trainer", "pid": 7})");
}

TEST_F(EventLogTest, EventsAreAppended) {
  Open({.file = file_}).Add(std::vector{SavedEvent(1), SavedEvent(2)});
  log_->Add(std::vector{SavedEvent(3)});
  Open({.file = file_}).Add(std::vector{SavedEvent(4)});  // another agent
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(1)), EventJson(SavedEvent(2)), EventJson(SavedEvent(3)),
                                        EventJson(SavedEvent(4))));
}

TEST_F(EventLogTest, AFullFileIsRotatedWithoutLoss) {
  const size_t bytes = EventJson(SavedEvent(1)).size() + 1;
  Open({.file = file_, .max_file_bytes = 2 * bytes});
  for (uint64_t i = 1; i <= 5; ++i) log_->Add(std::vector{SavedEvent(i)});
  EXPECT_THAT(Lines(file_ + ".1"), ElementsAre(EventJson(SavedEvent(3)), EventJson(SavedEvent(4))));
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(5))));
}

TEST_F(EventLogTest, TheNextEventGoesToTheFileOfThatName) {
  const std::string aside = directory_ / "aside.jsonl";
  Open({.file = file_}).Add(std::vector{SavedEvent(1)});
  std::filesystem::rename(file_, aside);
  log_->Add(std::vector{SavedEvent(2), SavedEvent(3)});
  EXPECT_THAT(Lines(aside), ElementsAre(EventJson(SavedEvent(1))));
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(2)), EventJson(SavedEvent(3))));
  std::filesystem::remove(file_);
  log_->Add(std::vector{SavedEvent(4)});
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(4))));
  std::filesystem::rename(aside, file_);  // replaced
  log_->Add(std::vector{SavedEvent(5)});
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(1)), EventJson(SavedEvent(5))));
  std::filesystem::rename(file_, aside);
  std::filesystem::create_symlink(aside, file_);  // the same file
  log_->Add(std::vector{SavedEvent(6)});
  EXPECT_THAT(Lines(aside), ElementsAre(EventJson(SavedEvent(1)), EventJson(SavedEvent(5)), EventJson(SavedEvent(6))));
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(EventLogTest, ATruncatedFileIsNotFull) {
  const size_t bytes = EventJson(SavedEvent(1)).size() + 1;
  Open({.file = file_, .max_file_bytes = 2 * bytes}).Add(std::vector{SavedEvent(1), SavedEvent(2)});
  std::filesystem::resize_file(file_, 0);
  log_->Add(std::vector{SavedEvent(3)});
  EXPECT_THAT(Lines(file_), ElementsAre(EventJson(SavedEvent(3))));
  EXPECT_FALSE(std::filesystem::exists(file_ + ".1"));
}

TEST_F(EventLogTest, AnotherPipeOfThatNameIsOpened) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int gone = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  Open({.file = file_}).Add(std::vector{SavedEvent(1)});
  close(gone);
  std::filesystem::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  log_->Add(std::vector{SavedEvent(2)});
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(read(reader, text.data(), text.size()), 0)));
  EXPECT_EQ(text, EventJson(SavedEvent(2)) + "\n");
  close(reader);
}

// As a full disk or a power cut leaves it.
TEST_F(EventLogTest, AnIncompleteLineDamagesNoOther) {
  std::ofstream(file_) << EventJson(SavedEvent(1)) << "\n" << EventJson(SavedEvent(2)).substr(0, 20) << std::string(3, '\0');
  Open({.file = file_}).Add(std::vector{SavedEvent(3), SavedEvent(4)});
  const std::vector<std::string> lines = Lines(file_);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], EventJson(SavedEvent(1)));
  EXPECT_EQ(lines[2], EventJson(SavedEvent(3)));
  EXPECT_EQ(lines[3], EventJson(SavedEvent(4)));
}

TEST_F(EventLogTest, AFailedWriteIsLoggedOnceAndTriedAgain) {
  const std::string later = directory_ / "later";
  Open({.file = later + "/events.jsonl"}).Add(std::vector{SavedEvent(1), SavedEvent(2)});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("No such file or directory")));
  std::filesystem::create_directory(later);
  log_->Add(std::vector{SavedEvent(3)});
  EXPECT_THAT(Lines(later + "/events.jsonl"), ElementsAre(EventJson(SavedEvent(3))));
  EXPECT_EQ(warnings_.size(), 1U);
}

// As stdout may be.
TEST_F(EventLogTest, APipeThatNobodyReadsDoesNotBlock) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  Open({.file = file_});
  for (int i = 0; i < 100; ++i) log_->Add(std::vector<JobEvent>(100, SavedEvent(1)));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("its reader is too slow")));
  std::string text(1 << 20, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(read(reader, text.data(), text.size()), 0)));
  ASSERT_TRUE(text.ends_with("\n")) << "lines are whole";
  EXPECT_EQ(text.substr(0, text.find('\n')), EventJson(SavedEvent(1)));
  log_->Add(std::vector{SavedEvent(2)});
  close(reader);
  log_->Add(std::vector{SavedEvent(3)});  // SIGPIPE would end the test, unless it is ignored
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("its reader"), HasSubstr("its reader")));
}

// The collector adds them, and the threads of the pages read them.
TEST_F(EventLogTest, EventsAreReadWhileOthersAreAdded) {
  constexpr uint64_t kLast = 2000;
  Open({.max_kept = 10});
  std::jthread adder([this] {
    for (uint64_t i = 1; i <= kLast; ++i) log_->Add(std::vector{SavedEvent(i)});
  });
  for (uint64_t newest = 0; newest < kLast;) {
    const std::vector<JobEvent> events = log_->Newest({});
    ASSERT_TRUE(std::ranges::is_sorted(events, {}, &JobEvent::unix_ms));
    if (!events.empty()) newest = events.back().unix_ms;
  }
}

}  // namespace
}  // namespace persia::agent
