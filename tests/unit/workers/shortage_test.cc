// Segments that ended together, of which the memory is enough for one at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/proc_reader.h"
#include "ledger/retired_test.h"
#include "workers/exits.h"

namespace persia::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int kAlways = 1000;

// Opens a file once it was refused so often for lack of memory: a segment is tried when it is found, when all that ended have
// been read, and again when they are folded.
class SmallMemory : public DiskSegmentDirectory {
 public:
  SmallMemory(std::string path, std::map<std::string, int> refusals)
      : DiskSegmentDirectory(std::move(path)), refusals_(std::move(refusals)) {}

  std::unique_ptr<SegmentReader> Open(const std::string& name, const SegmentAccess& access, SegmentProblem& problem) override {
    if (refusals_[name]-- > 0) {
      problem = {.reason = "memory", .text = "it does not fit"};
      return nullptr;
    }
    return DiskSegmentDirectory::Open(name, access, problem);
  }

 private:
  std::map<std::string, int> refusals_;
};

class ShortageTest : public RetiredTest {
 protected:
  void Refuse(std::map<std::string, int> refusals) {
    files_ = [this, refusals = std::move(refusals)] { return std::make_unique<SmallMemory>(directory(), refusals); };
    StartAgent();
  }
  // One that has ended, whose supervisor has not told how.
  std::string Ended(int replica, uint32_t pid = 4711) {
    auto process = Start({.role = "worker", .replica = replica});
    process->segment.header().pid_namespace = ProcReader().PidNamespace("self").value();
    process->segment.header().pid = pid;
    process->segment.header().start_ticks = 9;
    process->segment.Counter("my_app", "batches", {}, 5);
    process->Put().Die();
    return process->name;
  }
  // The replicas that are listed when all is folded, and the exits that were told late.
  std::vector<std::string> Listed() {
    source().Read();
    source().Retire();
    std::vector<std::string> listed;
    for (const Process& process : source().folded()) listed.push_back("rep_" + std::to_string(process.rank.replica));
    for (const LateExit& late : source().lifecycle().late_exits()) listed.push_back("late " + late.exit);
    source().Commit();
    return listed;
  }
};

TEST_F(ShortageTest, AllAreFoldedInOneCollection) {
  Ended(0);
  Refuse({{Ended(1), 2}, {Ended(2), 2}});
  EXPECT_THAT(Listed(), UnorderedElementsAre("rep_0", "rep_1", "rep_2"));
  EXPECT_EQ(source().stats().retired, 3U);
  EXPECT_EQ(source().Ends().size(), 3U);
  EXPECT_THAT(Diagnosed(), IsEmpty());
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(Shown("my_app_batches@rep_2/worker"), "5");
}

TEST_F(ShortageTest, OneThatDoesNotFitAloneIsToldAndHoldsUpNone) {
  Ended(0);
  const std::string large = Ended(1);
  Refuse({{large, kAlways}, {Ended(2), 1}, {Ended(3), 2}});
  EXPECT_THAT(Listed(), UnorderedElementsAre("rep_0", "rep_2", "rep_3"));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr(large + " is not read: it does not fit")));
  EXPECT_THAT(Files(), ElementsAre(large));
}

TEST_F(ShortageTest, WhatIsToldLateIsToldOnce) {
  ExitReasons reaped;
  reaped_ = &reaped;
  Ended(0, 4710);
  Refuse({{Ended(1, 4711), 2}});
  EXPECT_THAT(Listed(), UnorderedElementsAre("rep_0", "rep_1")) << "and no end is unknown yet";
  reaped.Add(4710, 9, SIGKILL);
  reaped.Add(4711, 9, SIGABRT);
  Ended(2, 4712);
  EXPECT_THAT(Listed(), UnorderedElementsAre("rep_2", "late SIGKILL", "late SIGABRT"));
}

}  // namespace
}  // namespace persia::agent::testing
