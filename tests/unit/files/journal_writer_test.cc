#include "files/journal_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faulty_journal_file.h"
#include "no_threads.h"
#include "test_seed.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using persia::agent::testing::FaultyJournalFile;
using persia::agent::testing::Killed;
using std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr JournalFormat kWriterFormat{.magic = {'T', 'E', 'S', 'T', 'J', 'R', 'N', '\n'}, .version = 1};

std::string Numbered(const std::string& payload) {
  std::string records;
  AddRecord(records, 1, payload);
  return records;
}

class JournalWriterTest : public ::testing::Test {
 protected:
  JournalWriter::Options Options(bool threaded) {
    return {.file = file_, .format = kWriterFormat, .threaded = threaded, .now = [now = now_] { return now->load(); }};
  }
  void Advance(std::chrono::milliseconds by) { *now_ = now_->load() + by; }
  std::string Read() {
    std::string text;
    const auto content = ReadJournal(*file_, kWriterFormat, true, text);
    for (const JournalRecord& record : content.value().records) text += (text.empty() ? "" : " ") + std::string(record.payload);
    return text;
  }
  // A writer whose first write, of "first", hangs.
  std::unique_ptr<JournalWriter> Hanging() {
    auto writer = std::make_unique<JournalWriter>(Options(true));
    writer->Start();
    file_->Hang();
    writer->Replace(Numbered("first"));
    file_->AwaitHanging();
    return writer;
  }

  std::shared_ptr<FaultyJournalFile> file_ = std::make_shared<FaultyJournalFile>();
  const std::shared_ptr<std::atomic<steady_clock::time_point>> now_ =
      std::make_shared<std::atomic<steady_clock::time_point>>(steady_clock::time_point(1h));
};

TEST_F(JournalWriterTest, TheThreadWritesInOrder) {
  JournalWriter writer(Options(true));
  EXPECT_TRUE(writer.WantsCheckpoint());
  writer.Start();
  EXPECT_EQ(writer.Replace(Numbered("a")), 1U);
  EXPECT_FALSE(writer.WantsCheckpoint());
  EXPECT_EQ(writer.Append(Numbered("b")), 2U);
  EXPECT_EQ(writer.Append(Numbered("c")), 3U);
  EXPECT_EQ(writer.last(), 3U);
  EXPECT_TRUE(writer.AwaitWritten(3, 1h));
  EXPECT_EQ(writer.written(), 3U);
  EXPECT_EQ(Read(), "a b c");
  const auto stats = writer.stats();
  EXPECT_EQ(stats.waiting_bytes, 0U);
  EXPECT_EQ(stats.behind, 0ms);
  EXPECT_EQ(stats.bytes_written, stats.file_bytes);
  std::string none;
  EXPECT_EQ(stats.file_bytes, file_->Read(none).value()->size());
}

TEST_F(JournalWriterTest, TheThreadHasAName) {
  const auto writer = Hanging();
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::getline(std::ifstream(task.path() / "comm"), names.emplace_back());
  }
  EXPECT_THAT(names, Contains("state journal"));
  file_->Release();
}

TEST_F(JournalWriterTest, AnEmptyAppendWritesNothing) {
  JournalWriter writer(Options(false));
  writer.Replace("");
  EXPECT_EQ(writer.Append(""), 1U);
  EXPECT_EQ(file_->writes(), 1);
  EXPECT_TRUE(writer.AwaitWritten(1, 0ms));
}

TEST_F(JournalWriterTest, WhatWaitsBehindAWriteIsOneBatch) {
  const auto writer = Hanging();
  for (int i = 0; i < 100; ++i) writer->Append(Numbered(std::to_string(i)));
  file_->Release();
  EXPECT_TRUE(writer->AwaitWritten(101, 1h));
  EXPECT_EQ(file_->writes(), 2);
}

// Each of these would otherwise wait for ever, or as long as the patience.
TEST_F(JournalWriterTest, AWriteThatHangsHoldsUpNobody) {
  std::weak_ptr<FaultyJournalFile> file = file_;
  {
    const auto writer = Hanging();
    writer->Append(Numbered("second"));
    EXPECT_FALSE(writer->AwaitWritten(1, 0ms));
    Advance(2h);
    EXPECT_FALSE(writer->AwaitWritten(1, 1h)) << "it has been hanging for longer";
    EXPECT_EQ(writer->stats().behind, 2h);
    EXPECT_FALSE(writer->Blocked());
    EXPECT_EQ(writer->written(), 0U);
    writer->Replace(Numbered("third"));
    writer->Stop(1ms);
    EXPECT_EQ(writer->Append(Numbered("fourth")), 4U);
  }
  const auto kept = std::move(file_);
  EXPECT_GT(kept.use_count(), 1) << "the thread owns it, too";
  kept->Release();
  while (kept.use_count() > 1) std::this_thread::yield();
  EXPECT_EQ(kept->writes(), 1) << "a thread that was left alone writes nothing more";
}

TEST_F(JournalWriterTest, WhatWaitsBehindAWriteThatHangsIsBounded) {
  JournalWriter::Options options = Options(true);
  options.min_growth = 100;
  JournalWriter writer(options);
  writer.Start();
  file_->Hang();
  const std::string whole = Numbered(std::string(1000, 'x'));
  const std::string change = Numbered("x");
  writer.Replace(whole);
  file_->AwaitHanging();
  int checkpoints = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool checkpoint = writer.WantsCheckpoint();
    checkpoints += checkpoint ? 1 : 0;
    checkpoint ? writer.Replace(whole) : writer.Append(change);
    ASSERT_LE(writer.stats().waiting_bytes, 3 * whole.size() + change.size());
  }
  EXPECT_EQ(checkpoints, 10'000 / static_cast<int>(whole.size() / change.size() + 2));
  file_->Release();
  EXPECT_TRUE(writer.AwaitWritten(writer.last(), 1h));
  EXPECT_EQ(file_->writes(), 2);
}

TEST_F(JournalWriterTest, ACheckpointIsWantedWhenTheFileHasDoubled) {
  JournalWriter::Options options = Options(false);
  options.min_growth = 100;
  JournalWriter writer(options);
  const auto until_wanted = [&] {
    size_t appended = 0;
    while (!writer.WantsCheckpoint()) {
      const std::string records = Numbered("x");
      writer.Append(records);
      appended += records.size();
    }
    return appended;
  };
  const std::string whole = Numbered(std::string(1000, 'x'));
  writer.Replace(whole);
  EXPECT_EQ(until_wanted(), whole.size() / 13 * 13 + 13);
  writer.Replace("");
  EXPECT_EQ(until_wanted(), 104U) << "min_growth";
}

TEST_F(JournalWriterTest, AFailedWriteIsFollowedByACheckpointAfterABackoff) {
  JournalWriter writer(Options(false));
  writer.Replace(Numbered("a"));
  file_->SetFails(true, 20);
  EXPECT_EQ(writer.Append(Numbered("b")), 2U);
  for (const auto delay : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    EXPECT_TRUE(writer.Blocked());
    EXPECT_FALSE(writer.WantsCheckpoint());
    Advance(delay - 1ms);
    EXPECT_TRUE(writer.Blocked());
    Advance(1ms);
    EXPECT_FALSE(writer.Blocked());
    EXPECT_TRUE(writer.WantsCheckpoint());
    writer.Replace(Numbered("a") + Numbered("b"));
  }
  EXPECT_EQ(writer.stats().errors, 8U);
  EXPECT_EQ(writer.stats().error, "cannot write: full");
  EXPECT_EQ(writer.stats().behind, 91s);
  EXPECT_EQ(writer.written(), 1U);
  EXPECT_FALSE(writer.AwaitWritten(2, 1h)) << "the last one failed";
  EXPECT_EQ(Read(), "a");

  file_->SetFails(false);
  EXPECT_EQ(writer.Append(Numbered("c")), 10U);
  EXPECT_EQ(writer.written(), 1U) << "what is appended to a torn batch could not be read";
  EXPECT_EQ(Read(), "a");
  writer.Replace(Numbered("a") + Numbered("b") + Numbered("c"));
  EXPECT_EQ(Read(), "a b c") << "tried at once, even though it is blocked";
  EXPECT_EQ(writer.written(), 11U);
  EXPECT_EQ(writer.stats().error, std::nullopt);
  EXPECT_EQ(writer.stats().behind, 0ms);
  file_->SetFails(true);
  writer.Append(Numbered("d"));
  Advance(1s);
  EXPECT_TRUE(writer.WantsCheckpoint()) << "the backoff began anew";
}

TEST_F(JournalWriterTest, AWriteThatHungAndFailedIsFollowedByTheCheckpointThatWaits) {
  const auto writer = Hanging();
  writer->Append(Numbered("second"));
  EXPECT_EQ(writer->Replace(Numbered("whole")), 3U);
  writer->Append(Numbered("more"));
  file_->SetFails(true);
  file_->Release();
  writer->Stop(1h);
  EXPECT_EQ(writer->stats().errors, 2U);

  file_->SetFails(false);
  const auto next = Hanging();
  next->Append(Numbered("lost"));
  file_->SetFails(true);
  file_->Release();
  EXPECT_FALSE(next->AwaitWritten(2, 1h));
  EXPECT_TRUE(next->Blocked());
  EXPECT_EQ(next->stats().waiting_bytes, 0U) << "what follows a failed write is in the next checkpoint";
}

TEST_F(JournalWriterTest, StopWritesWhatWaits) {
  const auto writer = Hanging();
  writer->Append(Numbered("second"));
  file_->Release();
  writer->Stop(1h);
  EXPECT_EQ(Read(), "first second");
  EXPECT_EQ(writer->written(), 2U);
  writer->Append(Numbered("late"));
  EXPECT_FALSE(writer->AwaitWritten(3, 1h));
  EXPECT_EQ(Read(), "first second");
}

TEST_F(JournalWriterTest, WithoutAThreadItWritesAtOnce) {
  JournalWriter writer(Options(true));
  writer.Replace(Numbered("a"));
  EXPECT_FALSE(writer.AwaitWritten(1, 1h)) << "not started";
  EXPECT_EQ(Read(), "");
  {
    const NoThreads no_threads;
    writer.Start();
  }
  EXPECT_EQ(Read(), "a");
  writer.Append(Numbered("b"));
  EXPECT_EQ(Read(), "a b");
}

TEST_F(JournalWriterTest, AnExceptionOfTheFileReachesTheCaller) {
  {
    JournalWriter writer(Options(false));
    writer.Replace(Numbered("a"));
    writer.Append(Numbered("b"));
    file_->Kill();
    EXPECT_THROW(writer.Append(Numbered("c")), Killed);
    EXPECT_TRUE(writer.Blocked());
    EXPECT_EQ(writer.written(), 2U);
    EXPECT_THROW(writer.Replace(Numbered("x")), Killed);
    EXPECT_THAT(writer.stats().error.value_or(""), HasSubstr("cannot write state"));
  }
  EXPECT_EQ(file_->writes(), 4) << "nothing is written after a kill";
  EXPECT_EQ(Read(), "a b c");
}

TEST_F(JournalWriterTest, ManyThreadsMayWrite) {
  for (const bool threaded : {true, false}) {
    JournalWriter writer(Options(threaded));
    writer.Start();
    writer.Replace("");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&writer, i] {
        for (int n = 0; n < 100; ++n) {
          const uint64_t number = writer.Append(Numbered(std::to_string(i)));
          EXPECT_TRUE(writer.AwaitWritten(number, 1h));
          EXPECT_GE(writer.written(), number);
          EXPECT_EQ(writer.stats().errors, 0U);
          EXPECT_FALSE(writer.Blocked());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Read().size(), 799U);
    EXPECT_EQ(writer.written(), 401U);
  }
}

// After any history of changes, failures and kills, the file has the first changes, without a gap, and all that was reported as
// written.
TEST_F(JournalWriterTest, WhatIsReadIsAlwaysABeginningOfWhatHappened) {
  std::mt19937_64 random(TestSeed());
  const auto one_in = [&random](unsigned n) { return random() % n == 0; };
  for (int history = 0; history < 1000; ++history) {
    file_ = std::make_shared<FaultyJournalFile>();
    JournalWriter::Options options = Options(false);
    options.min_growth = 40;
    JournalWriter writer(options);
    std::string whole;
    std::vector<std::string> states = {""};  // after each change
    size_t on_disk = 0;                      // changes
    try {
      for (int i = 0; i < 40; ++i) {
        const std::string change = std::to_string(i);
        whole += Numbered(change);
        states.push_back(states.back() + (i == 0 ? "" : " ") + change);
        file_->SetFails(one_in(5), random() % 60);
        if (one_in(60)) file_->Kill();
        if (writer.WantsCheckpoint()) {
          writer.Replace(whole);
        } else if (!writer.Blocked()) {
          writer.Append(Numbered(change));
        }
        if (writer.written() == writer.last() && !writer.Blocked()) on_disk = states.size() - 1;
        Advance(std::chrono::milliseconds(random() % 2000));
        const std::string read = Read();
        const auto found = std::find(states.begin(), states.end(), read);
        ASSERT_NE(found, states.end()) << read;
        ASSERT_GE(static_cast<size_t>(found - states.begin()), on_disk);
      }
    } catch (const Killed&) {
      const auto found = std::find(states.begin(), states.end(), Read());
      ASSERT_GE(static_cast<size_t>(found - states.begin()), on_disk);
      ASSERT_NE(found, states.end());
    }
  }
}

}  // namespace
}  // namespace persia::agent
