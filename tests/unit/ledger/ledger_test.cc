// Reading and writing the state.
#include "ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "files/bytes.h"
#include "ledger/memory_journal_file.h"
#include "ledger/sample_state.h"

namespace persia::agent::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The state after a load and a save of a fresh agent; empty: it was refused.
std::string Again(const std::string& state) {
  MemoryDisk disk{.bytes = state};
  Diagnostics diagnostics;
  const auto ledger = Loaded(disk, diagnostics);
  if (!diagnostics.Take().empty()) return "";
  ledger->Forget("0123456789abcdef0123456789abcdef");  // a change, so that it is written
  ledger->Save(SampleTime());
  return *disk.bytes;
}

TEST(LedgerTest, ACheckpointOfWhatWasReadIsTheSame) {
  const std::string state = Again(SampleState());
  ASSERT_NE(state, "");
  MemoryDisk disk{.bytes = state};
  Diagnostics diagnostics;
  Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk), .run_id = "r", .threaded = false}, diagnostics);
  ledger.Load(SampleTime());
  EXPECT_THAT(ledger.Orphans(), ::testing::SizeIs(2));
  ledger.MoveTo(std::make_shared<MemoryJournalFile>(disk));
  ledger.Save(SampleTime());
  EXPECT_EQ(*disk.bytes, state);
}

TEST(LedgerTest, TheDocumentedExampleIsExact) {
  std::string bytes;
  bool example = false;
  std::istringstream document(ReadAll(std::string(LEDGER_TESTDATA) + "/../../../../agent/ledger/state_format.md"));
  for (std::string line; std::getline(document, line);) {
    example = line == "```" ? !example : example;
    for (size_t at = 0; example && at + 2 <= line.size() && at < 48 && isxdigit(line[at]) != 0; at += 3) {
      bytes += static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16));
    }
  }
  MemoryDisk disk{.bytes = bytes};
  Diagnostics diagnostics;
  Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk), .run_id = "r", .threaded = false}, diagnostics);
  ledger.Load(SampleTime());
  EXPECT_THAT(diagnostics.Take(), IsEmpty());
  EXPECT_EQ(ledger.processes().processes(), 2U);
  EXPECT_FALSE(ledger.IsFolded("1f"));
  disk.bytes->resize(disk.bytes->size() - 1);  // the forget is torn off
  Ledger torn({.file = std::make_shared<MemoryJournalFile>(disk), .run_id = "r", .threaded = false}, diagnostics);
  torn.Load(SampleTime());
  EXPECT_TRUE(torn.IsFolded("1f"));
}

// An agent with other records writes another version.
TEST(LedgerTest, AnUnknownRecordIsRefused) {
  EXPECT_EQ(Again(StateWith(4711, "what no agent of this version writes")), "");
  EXPECT_NE(Again(StateWith(static_cast<uint16_t>(StateRecord::kHealth), Encode(std::string("well")))), "");
}

TEST(LedgerTest, TheJudgementOfTheHealthIsKept) {
  MemoryDisk disk;
  Diagnostics diagnostics;
  auto ledger = Loaded(disk, diagnostics);
  EXPECT_EQ(ledger->health(), "");
  for (const char* text : {"well", "hung"}) {
    ledger->SetHealth(text);
    ledger->Save(SampleTime());
  }
  ledger = Loaded(disk, diagnostics);
  EXPECT_EQ(ledger->health(), "hung") << "the last one, from a record of its own";
  disk.bytes = Again(*disk.bytes);
  ledger = Loaded(disk, diagnostics);
  EXPECT_EQ(ledger->health(), "hung") << "from a checkpoint";
}

TEST(LedgerTest, TheRanksTimeIsKeptAndNoFoldIsReadWithoutIt) {
  MemoryDisk disk;
  Diagnostics diagnostics;
  auto ledger = Loaded(disk, diagnostics);
  ledger->SetGoodput("first");
  EXPECT_FALSE(ledger->GoodputIsSaved());
  ledger->Save(SampleTime());
  EXPECT_TRUE(ledger->GoodputIsSaved());
  const std::string before = *disk.bytes;
  ledger->Fold(SampleProcess(7, 0, 3).values(), {.id = {.pid = 10}}, SampleTime());
  ledger->SetGoodput("second");
  EXPECT_FALSE(ledger->GoodputIsSaved());
  ledger->Save(SampleTime());
  EXPECT_TRUE(ledger->GoodputIsSaved());
  const std::string after = *disk.bytes;
  for (size_t size = before.size(); size <= after.size(); ++size) {
    disk.bytes = after.substr(0, size);
    ledger = Loaded(disk, diagnostics);
    if (ledger->processes().processes() > 0) {
      EXPECT_EQ(ledger->goodput(), "second") << size;
    }
  }
  disk.bytes = Again(after);
  ledger = Loaded(disk, diagnostics);
  EXPECT_EQ(ledger->goodput(), "second") << "from a checkpoint";
  ledger->MoveTo(std::make_shared<MemoryJournalFile>(disk));
  EXPECT_FALSE(ledger->GoodputIsSaved());
  ledger->Save(SampleTime());
  EXPECT_TRUE(ledger->GoodputIsSaved());
}

TEST(LedgerTest, WhatWasShownStaysWhenTheStateMoves) {
  MemoryDisk disk, other;
  Diagnostics diagnostics;
  Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk), .run_id = "r", .patience = std::chrono::milliseconds(0)},
                diagnostics);
  ledger.Load(SampleTime());
  ledger.Fold(SampleProcess(3, 0, 0).values(), {.id = {.pid = 7, .start_ticks = 9}}, SampleTime());
  ledger.SetSeen(12);
  ledger.Save(SampleTime());
  ASSERT_TRUE(ledger.Flush(std::chrono::seconds(50)));
  const auto exits = [&] { return ledger.Exits(ledger.processes().instances().begin()->first); };
  EXPECT_EQ(exits(), (std::map<std::string, uint64_t>{{"unknown", 1}}));
  EXPECT_TRUE(ledger.UnsavedPlaces().empty());
  ledger.MoveTo(std::make_shared<MemoryJournalFile>(other));
  EXPECT_EQ(exits(), (std::map<std::string, uint64_t>{{"unknown", 1}}));
  EXPECT_TRUE(ledger.UnsavedPlaces().empty());
  EXPECT_EQ(ledger.Seen(), 12U);
}

TEST(LedgerTest, WhatWasSeenCountsWhenItIsOnDisk) {
  MemoryDisk disk;
  bool full = false;
  Diagnostics diagnostics;
  const auto open = [&](const std::string& boot_id) {
    const auto allow = [&](MemoryJournalFile::Operation /*operation*/, size_t bytes) { return full ? 0 : bytes; };
    Ledger::Options options{.file = std::make_shared<MemoryJournalFile>(disk, allow), .run_id = "r"};
    options.boot_id = boot_id;
    options.threaded = false;
    options.now = [at = std::chrono::steady_clock::time_point()]() mutable { return at += std::chrono::hours(1); };
    auto ledger = std::make_unique<Ledger>(std::move(options), diagnostics);
    ledger->Load(SampleTime());
    return ledger;
  };
  auto ledger = open("this boot");
  EXPECT_EQ(ledger->Seen(), 0U);
  const auto see = [&](uint64_t ns) {
    ledger->SetSeen(ns);
    ledger->Save(SampleTime());
    return ledger->Seen();
  };
  EXPECT_EQ(see(10), 10U);
  EXPECT_EQ(see(20), 20U);
  full = true;
  EXPECT_EQ(see(30), 20U);
  EXPECT_EQ(see(40), 20U);
  full = false;
  EXPECT_EQ(see(50), 50U);
  EXPECT_EQ(open("this boot")->Seen(), 50U) << "from a checkpoint";
  EXPECT_EQ(see(60), 60U);
  EXPECT_EQ(open("this boot")->Seen(), 60U) << "from a record of its own";
  ledger->SetSeen(70);
  EXPECT_TRUE(ledger->Flush(std::chrono::seconds(0)));
  EXPECT_EQ(open("this boot")->Seen(), 70U) << "from a record that came after the last save";
  EXPECT_EQ(open("the next boot")->Seen(), 0U) << "the clock counts from another time";

  Ledger without_a_state({.threaded = false}, diagnostics);
  without_a_state.Load(SampleTime());
  without_a_state.SetSeen(70);
  EXPECT_EQ(without_a_state.Seen(), 70U);
}

TEST(LedgerTest, RecordsOfAnyBytesAreReadOrRefused) {
  for (const auto& [tag, payload] : SampleRecords()) {
    for (size_t at = 0; at < payload.size(); ++at) {
      for (const char bit : {1, 16, -128}) {
        std::string damaged = payload;
        damaged[at] = static_cast<char>(damaged[at] ^ bit);
        Again(StateWith(tag, damaged));  // a value or a text may be anything
      }
      EXPECT_EQ(Again(StateWith(tag, payload.substr(0, at))), "") << "record " << tag << ", the first " << at << " bytes";
    }
    EXPECT_EQ(Again(StateWith(tag, payload + "x")), "") << "record " << tag;
  }
}

TEST(LedgerTest, AnIdleJobWritesNothing) {
  MemoryDisk disk;
  size_t writes = 0;
  const auto count = [&](MemoryJournalFile::Operation operation, size_t bytes) {
    writes += operation == MemoryJournalFile::Operation::kAppend || operation == MemoryJournalFile::Operation::kReplace ? 1 : 0;
    return bytes;
  };
  Diagnostics diagnostics;
  Ledger ledger(
      {.file = std::make_shared<MemoryJournalFile>(disk, count), .saves_living = true, .run_id = "r", .threaded = false},
      diagnostics);
  ledger.Load(SampleTime());
  const SampleProcess process(3);
  for (int i = 0; i < 10; ++i) {
    ledger.Note(process.values(), {});
    ledger.Save(SampleTime());
  }
  EXPECT_EQ(writes, 1U);
}

// The bytes written grow with the changes, not with the state.
TEST(LedgerTest, AChangeCostsWhatChanged) {
  MemoryDisk disk;
  size_t written = 0;
  const auto count = [&](MemoryJournalFile::Operation, size_t bytes) { return written = bytes; };
  Diagnostics diagnostics;
  Ledger ledger(
      {.file = std::make_shared<MemoryJournalFile>(disk, count), .saves_living = true, .run_id = "r", .threaded = false},
      diagnostics);
  ledger.Load(SampleTime());
  for (uint64_t counted = 1; counted < 200; ++counted) {
    const SampleProcess process(counted, /*series=*/300);
    ledger.Note(process.values(), {});
    ledger.Save(SampleTime());
    if (counted > 1) {
      EXPECT_LT(written, 1000U);
    }
  }
  EXPECT_LT(disk.bytes->size(), 100'000U);
}

// The file was written by write_golden_state. Another format needs another version, and a file of that.
TEST(LedgerTest, TheStateOfThisVersionDoesNotChange) {
  MemoryDisk disk{.bytes = ReadAll(std::string(LEDGER_TESTDATA) + "/state_v1")};
  EXPECT_TRUE(WholeSampleState() == disk.bytes) << "the bytes differ";
  Diagnostics diagnostics;
  const auto ledger = Loaded(disk, diagnostics);
  EXPECT_THAT(diagnostics.Take(), IsEmpty());
  EXPECT_EQ(ledger->processes().processes(), 3U);
  EXPECT_THAT(ledger->FoldedIds(), ::testing::SizeIs(2)) << "the file of one was removed";
  EXPECT_THAT(ledger->Orphans(), ::testing::SizeIs(1));
  EXPECT_EQ(ledger->health(), "how it is");
  EXPECT_EQ(ledger->goodput(), "where the time went");
  EXPECT_EQ(ledger->Seen(), 12U);
  uint64_t counted = 0;
  for (const RetiredGroup& group : ledger->processes().groups()) counted += group.Input().values->wholes[group.series(0).whole];
  EXPECT_EQ(counted, 3U + 4U + 7U);
}

}  // namespace
}  // namespace persia::agent::testing
