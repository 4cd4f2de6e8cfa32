#include "files/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr JournalFormat kFormat{.magic = {'T', 'E', 'S', 'T', 'J', 'R', 'N', '\n'}, .version = 1};
using Payloads = std::vector<std::string>;

// Cannot be renamed.
class FixedFile : public DiskJournalFile {
 public:
  using DiskJournalFile::DiskJournalFile;
  bool SetAside(std::string_view why, std::string& message) override {
    message = "cannot rename: " + std::string(why);
    return false;
  }
};

class JournalTest : public ::testing::Test {
 protected:
  DiskJournalFile::Options Options() const { return {directory_.get(), temporary_.path(), "agent.state"}; }

  // Adds a batch to bytes_, the first as the checkpoint; notes where each record ends.
  void Add(const Payloads& payloads) {
    std::string records;
    const size_t before = bytes_.empty() ? JournalCheckpoint(kFormat, "").size() : bytes_.size() + JournalBatch(0, "").size();
    for (const std::string& payload : payloads) {
      AddRecord(records, static_cast<uint16_t>(ends_.size() + 1), payload);
      ends_.push_back(before + records.size());
      payloads_.push_back(payload);
    }
    batch_begins_.push_back(bytes_.size());
    bytes_ += bytes_.empty() ? JournalCheckpoint(kFormat, records) : JournalBatch(bytes_.size(), records);
  }
  void AddSeveral() {
    Add({"one", std::string("\0two", 4)});
    Add({"three"});
    Add({"", "five"});
    Add({"six", std::string(50, '7'), "eight"});
  }
  void Put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  // Reads `bytes`; the number of records that were read, which must be the first of those added.
  size_t Read(const std::string& bytes) {
    Put(bytes);
    DiskJournalFile file(Options());
    const auto content = ReadJournal(file, kFormat, true, problem_);
    EXPECT_TRUE(content.ok());
    const auto& records = content.value().records;
    EXPECT_LE(records.size(), payloads_.size());
    for (size_t i = 0; i < std::min(records.size(), payloads_.size()); ++i) {
      EXPECT_EQ(records[i].tag, i + 1);
      EXPECT_EQ(records[i].payload, payloads_[i]);
    }
    return records.size();
  }
  size_t RecordsBefore(size_t at) const {
    return static_cast<size_t>(std::count_if(ends_.begin(), ends_.end(), [at](size_t end) { return end <= at; }));
  }
  // Reads the file, as an agent does at its start.
  Result<JournalContent> ReadAgain() {
    DiskJournalFile file(Options());
    return ReadJournal(file, kFormat, false, problem_);
  }

  const TemporaryDirectory temporary_;
  const fs::path path_ = temporary_ / "agent.state";
  const OwnedFd directory_{open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::string bytes_;
  std::vector<size_t> ends_;
  std::vector<size_t> batch_begins_;
  Payloads payloads_;
  std::string problem_;
};

TEST_F(JournalTest, WhatWasWrittenIsRead) {
  EXPECT_EQ(ReadAgain().value().bytes, nullptr) << "there is none";
  AddSeveral();
  EXPECT_EQ(Read(bytes_), 8U);
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(Read(JournalCheckpoint(kFormat, "")), 0U);
  EXPECT_EQ(problem_, "");
}

TEST_F(JournalTest, TheBytesAreThoseOfTheGrammar) {
  std::string record;
  AddRecord(record, 5, "abc");
  const std::string written = JournalCheckpoint(kFormat, record) + JournalBatch(55, record);
  const std::string expected(
      "TESTJRN\n\1\0\0\0\0\0\0\0"
      "\x0c\0\0\0\xff\xff\0\0\x91\x8b\xba\x99\x10\0\0\0\0\0\0\0\x0f\0\0\0"
      "\3\0\0\0\5\0\0\0\x9a\x60\x38\x6a"
      "abc"
      "\x0c\0\0\0\xff\xff\0\0\xe6\xb9\x13\xf5\x37\0\0\0\0\0\0\0\x0f\0\0\0"
      "\3\0\0\0\5\0\0\0\x9a\x60\x38\x6a"
      "abc",
      94);
  EXPECT_EQ(written, expected);
}

// The content stays readable when it is moved and copied.
TEST_F(JournalTest, PayloadsMoveWithTheirContent) {
  AddSeveral();
  Put(bytes_);
  JournalContent copy;
  {
    JournalContent moved = ReadAgain().value();
    copy = moved;
    moved = {};
  }
  EXPECT_EQ(copy.records[7].payload, "eight");
}

TEST_F(JournalTest, AFileThatIsCutShortHasTheRecordsBeforeTheCut) {
  AddSeveral();
  for (size_t size = 0; size < bytes_.size(); ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(Read(bytes_.substr(0, size)), RecordsBefore(size));
    // The checkpoint is on disk before it has the file's name.
    EXPECT_EQ(problem_ != "", size < batch_begins_[1]) << problem_;
  }
}

TEST_F(JournalTest, AByteThatIsWrongCostsAtMostWhatFollowsIt) {
  AddSeveral();
  const std::set<size_t> reserved = {12, 13, 14, 15};
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (const int bits : {0x01, 0x10, 0x80, 0xff}) {
      SCOPED_TRACE(std::to_string(at) + " " + std::to_string(bits));
      std::string damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ bits);
      const size_t expected = at < 12 ? 0 : reserved.contains(at) ? payloads_.size() : RecordsBefore(at);
      EXPECT_EQ(Read(damaged), expected);
      // In the last batch a power cut may have caused it.
      EXPECT_EQ(problem_ != "", at < batch_begins_.back() && !reserved.contains(at)) << problem_;
    }
  }
}

// A power cut leaves any pages of the last append, even a record after those that are missing.
TEST_F(JournalTest, ZerosInTheLastBatchAreItsEnd) {
  AddSeveral();
  for (size_t at = batch_begins_.back(); at < bytes_.size(); ++at) {
    for (size_t count : {4UL, 40UL, bytes_.size()}) {
      SCOPED_TRACE(at);
      count = std::min(count, bytes_.size() - at);
      std::string cut = bytes_;
      cut.replace(at, count, count, '\0');
      if (cut == bytes_) continue;  // they were zero
      const size_t first = static_cast<size_t>(std::mismatch(cut.begin(), cut.end(), bytes_.begin()).first - cut.begin());
      EXPECT_EQ(Read(cut), RecordsBefore(first));
      EXPECT_EQ(problem_, "");
    }
  }
  for (const size_t zeros : {1, 11, 12, 24, 4096, 100'000}) {
    EXPECT_EQ(Read(bytes_ + std::string(zeros, '\0')), payloads_.size());
    EXPECT_EQ(problem_, "");
  }
}

TEST_F(JournalTest, DamageSaysWhereAndHowMuchAndKeepsTheFile) {
  AddSeveral();
  std::string damaged = bytes_;
  damaged[batch_begins_[2] + 30] ^= 1;
  const size_t at = batch_begins_[2] + 24;  // the record after the mark
  EXPECT_EQ(Read(damaged), 3U);
  const std::string why = path_.string() + " cannot be used: it is damaged at byte " + std::to_string(at) + ", and " +
                          std::to_string(bytes_.size() - at) + " bytes from there on are lost";
  EXPECT_EQ(problem_, why);
  EXPECT_TRUE(fs::exists(path_)) << "it was only looked at";

  EXPECT_EQ(ReadAgain().value().records.size(), 3U);
  EXPECT_EQ(problem_, why + "; it is kept as " + path_.string() + ".broken-1");
  std::ifstream kept(path_.string() + ".broken-1", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), damaged);
  EXPECT_TRUE(ReadAgain().value().records.empty());
  EXPECT_EQ(problem_, "") << "said once";
}

TEST_F(JournalTest, ACheckpointThatIsCutSaysWhatIsMissing) {
  AddSeveral();
  EXPECT_EQ(Read(bytes_.substr(0, ends_[0])), 1U);
  EXPECT_THAT(problem_, HasSubstr("at byte " + std::to_string(ends_[0]) + ", and " + std::to_string(ends_[1] - ends_[0]) +
                                  " bytes from there on are lost"));
}

TEST_F(JournalTest, ADamagedFileThatKeepsItsNameIsAnError) {
  Put("no journal");
  FixedFile file(Options());
  const auto content = ReadJournal(file, kFormat, false, problem_);
  ASSERT_FALSE(content.ok());
  EXPECT_EQ(content.error(), "cannot rename: it does not begin as an agent's state does");
}

TEST_F(JournalTest, WhatIsNoJournalIsSetAside) {
  AddSeveral();
  const auto with_version = [&](char version) { return std::string(bytes_).replace(8, 1, 1, version); };
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { Put(with_version(2)); }, "it has version 2, this agent reads version 1"},
      {[&] { Put(with_version(0)); }, "it has version 0"},
      {[&] { Put(bytes_.substr(0, 15)); }, "it has 15 bytes, which is less than its header"},
      {[&] { Put(std::string(5000, '\0')); }, "it does not begin as an agent's state does"},
      {[&] { fs::create_symlink("/etc/passwd", path_); }, "it is a symbolic link"},
      {[&] { fs::create_directory(path_); }, "it is not a regular file"},
      {[&] { Put(bytes_), fs::resize_file(path_, (1ULL << 30) + 1); }, "it is larger than any state of an agent"},
  };
  int n = 0;
  for (const auto& [put, why] : cases) {
    put();
    const auto content = ReadAgain();
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(content.value().records.empty());
    EXPECT_THAT(problem_, HasSubstr(why));
    EXPECT_THAT(problem_, HasSubstr(path_.string() + ".broken-" + std::to_string(++n)));
    EXPECT_FALSE(fs::exists(fs::symlink_status(path_)));
  }
}

// A journal inside a payload, as of a user's bytes, is not taken for one.
TEST_F(JournalTest, AMarkInsideAPayloadIsNoMark) {
  Add({"one"});
  Add({JournalBatch(bytes_.size(), "records"), "three"});
  for (size_t at = batch_begins_[1]; at < bytes_.size(); ++at) {
    std::string cut = bytes_;
    cut[at] ^= 1;
    EXPECT_EQ(Read(cut), RecordsBefore(at));
    EXPECT_EQ(problem_, "") << at;
  }
}

}  // namespace
}  // namespace persia::agent
