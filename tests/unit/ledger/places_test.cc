// The places of processes: an ordinal in an instance, and whether the next agent will know it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "files/bytes.h"
#include "ledger/ledger.h"
#include "ledger/ledger_records.h"
#include "ledger/memory_journal_file.h"
#include "ledger/sample_state.h"

namespace persia::agent::testing {
namespace {

// The next agent knows a process's place by its ordinal, or by its values after its end.
TEST(PlacesTest, APlaceIsSavedWithTheOrdinalOrWithTheEnd) {
  MemoryDisk disk, other;
  bool full = false;
  Diagnostics diagnostics;
  const auto allow = [&](MemoryJournalFile::Operation /*operation*/, size_t bytes) { return full ? 0 : bytes; };
  Ledger::Options options{.file = std::make_shared<MemoryJournalFile>(disk, allow), .run_id = "r"};
  options.threaded = false;
  options.now = [at = std::chrono::steady_clock::time_point()]() mutable { return at += std::chrono::hours(1); };
  Ledger ledger(std::move(options), diagnostics);
  ledger.Load(SampleTime());
  const SampleProcess known(3, 0, 0), late(3, 0, 1), brief(3, 0, 2);
  const auto unsaved = [&] {
    ledger.Save(SampleTime());
    uint64_t places = 0;
    for (const auto& [place, processes] : ledger.UnsavedPlaces()) places += processes;
    return places;
  };
  ledger.Note(known.values(), {.id = {.pid = 1, .start_ticks = 9}});
  EXPECT_EQ(unsaved(), 0U);
  full = true;
  ledger.Note(late.values(), {.id = {.pid = 2, .start_ticks = 9}});
  EXPECT_EQ(unsaved(), 1U);
  ledger.Fold(known.values(), {.id = {.pid = 1, .start_ticks = 9}}, SampleTime(), std::nullopt);
  EXPECT_EQ(unsaved(), 1U) << "its ordinal is on disk";
  ledger.Fold(brief.values(), {.id = {.pid = 3, .start_ticks = 9}}, SampleTime());
  EXPECT_EQ(unsaved(), 2U);
  ledger.Fold(late.values(), {.id = {.pid = 2, .start_ticks = 9}}, SampleTime());
  EXPECT_EQ(unsaved(), 2U) << "once";
  full = false;
  EXPECT_EQ(unsaved(), 0U);
  full = true;
  const SampleProcess another(3, 0, 3);
  ledger.Note(another.values(), {.id = {.pid = 4, .start_ticks = 9}});
  EXPECT_EQ(unsaved(), 1U);
  ledger.MoveTo(std::make_shared<MemoryJournalFile>(other));
  EXPECT_EQ(unsaved(), 0U) << "with the first write of the other file";
  ledger.SetExit({{"worker", 0}, 0}, {.pid = 1, .start_ticks = 9}, "SIGKILL");
  EXPECT_TRUE(ledger.UnsavedPlaces().empty()) << "how it ended is told later";
}

TEST(PlacesTest, AnUnsavedPlaceFollowsItsProcess) {
  MemoryDisk disk, other;
  Diagnostics diagnostics;
  const auto refuse = [](MemoryJournalFile::Operation operation, size_t bytes) {
    return operation == MemoryJournalFile::Operation::kRead ? bytes : 0;
  };
  Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk, refuse), .run_id = "r", .threaded = false}, diagnostics);
  ledger.Load(SampleTime());
  const auto places = [&] {
    ledger.Save(SampleTime());
    return ledger.UnsavedPlaces();
  };
  const auto place = [](int32_t replica, uint32_t ordinal) {
    return std::map<ProcessPlace, uint64_t>{{{{"worker", replica}, ordinal}, 1}};
  };
  const LastProcess process{.id = {.pid = 2, .start_ticks = 9}};
  const SampleProcess first(3, 0, 1), second(3, 0, 4), last(3, 0, 6);
  Measurements values = first.values();
  ledger.Note(values, process);
  EXPECT_EQ(places(), place(1, values.ordinal));
  values.ordinal = 5;
  ledger.Note(values, process);
  EXPECT_EQ(places(), place(1, 5));
  values.identity = second.values().identity;
  ledger.Note(values, process);
  EXPECT_EQ(places(), place(4, 5)) << "it has another replica index now";
  values.identity = last.values().identity;
  ledger.Fold(values, process, SampleTime());
  EXPECT_EQ(places(), place(6, 5)) << "it has another one, and ended at once";
  ledger.MoveTo(std::make_shared<MemoryJournalFile>(other));
  EXPECT_EQ(ledger.UnsavedPlaces(), place(6, 5));
  EXPECT_TRUE(places().empty());
}

TEST(PlacesTest, AnOrdinalIsOfOneInstance) {
  MemoryDisk disk;
  bool full = false;
  Diagnostics diagnostics;
  const auto allow = [&](MemoryJournalFile::Operation /*operation*/, size_t bytes) { return full ? 0 : bytes; };
  const RankId reader{"worker", 1}, writer{"worker", 4};
  const SampleProcess first(3, 0, 1), second(3, 0, 4);
  Measurements values = first.values();
  const std::string id(values.id);
  {
    Ledger ledger({.file = std::make_shared<MemoryJournalFile>(disk, allow), .run_id = "r", .threaded = false}, diagnostics);
    ledger.Load(SampleTime());
    ledger.Note(values, {.id = {.pid = 2, .start_ticks = 9}});
    ledger.Save(SampleTime());
    EXPECT_TRUE(ledger.UnsavedPlaces().empty());
    full = true;
    values.identity = second.values().identity;
    ledger.Note(values, {.id = {.pid = 2, .start_ticks = 9}});
    ledger.Save(SampleTime());
    EXPECT_EQ(ledger.UnsavedPlaces(), (std::map<ProcessPlace, uint64_t>{{{writer, values.ordinal}, 1}}));
    EXPECT_EQ(ledger.SavedPlace(id), (ProcessPlace{writer, values.ordinal}));
  }
  const auto next = Loaded(disk, diagnostics);
  EXPECT_EQ(next->SavedPlace(id), (ProcessPlace{reader, values.ordinal}));
  EXPECT_EQ(next->SavedPlace("another"), std::nullopt);
}

}  // namespace
}  // namespace persia::agent::testing
