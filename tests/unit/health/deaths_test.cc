// Which cause is named for which end, and in which words.
#include "health/deaths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "model/ends.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

Process EndBy(const std::string& exit) {
  return {.identity = {"dlrm", {{"instance", "rep_3"}, {"role", "trainer"}}}, .end = ProcessEnd{.exit = exit}};
}

Process EndByException(const UncaughtException& exception) {
  Process ended = EndBy("exit_1");
  ended.end->exception = exception;
  return ended;
}

Process Dead(Process ended) {
  SetDeath(ended, DeathOf(ended));
  return ended;
}

std::string CauseOf(const Process& ended) { return std::string(Name(DeathOf(ended).cause)); }

TEST(DeathsTest, ReasonsAloneNameACause) {
  const std::pair<const char*, const char*> cases[] = {
      {"SIGSEGV", "crash"},      {"SIGABRT", "crash"},    {"SIGBUS", "crash"},     {"SIGILL", "crash"},
      {"SIGFPE", "crash"},       {"SIGXCPU", "limit"},    {"SIGXFSZ", "limit"},    {"SIGKILL", "killed"},
      {"exit_137", "killed"},    {"SIGTERM", "launcher"}, {"SIGINT", "launcher"},  {"exit_143", "launcher"},
      {"exit_130", "launcher"},  {"SIGHUP", "signal"},    {"signal_40", "signal"}, {"exit_1", "exit_code"},
      {"exit_255", "exit_code"}, {"unknown", "unknown"},
  };
  for (const auto& [exit, cause] : cases) EXPECT_EQ(CauseOf(EndBy(exit)), cause) << exit;
}

TEST(DeathsTest, AKillThatTheKernelCountedIsLackOfMemory) {
  for (const char* exit : {"SIGKILL", "exit_137", "unknown"}) {
    Process ended = EndBy(exit);
    ended.end->about.killed_for_memory = true;
    EXPECT_EQ(CauseOf(ended), "out_of_memory") << exit;
  }
  Process other = EndBy("SIGSEGV");
  other.end->about.killed_for_memory = true;
  EXPECT_EQ(CauseOf(other), "crash") << "the kernel kills by SIGKILL";
}

TEST(DeathsTest, LackOfMemoryIsToldWithTheLimitAndTheTrend) {
  Process ended = EndBy("SIGKILL");
  ended.phase = "data";
  ended.step = 812;
  ended.end->about = {.killed_for_memory = true,
                      .memory_cgroup = "/job",
                      .memory_limit = 4096 * kMiB,
                      .resident = 3993 * kMiB,
                      .resident_before = 1229 * kMiB,
                      .oom_score = 950};
  EXPECT_EQ(
      SentenceOf(Dead(ended)),
      "killed by the kernel for lack of memory (the limit of its cgroup /job is 4.0 GiB; it had 3.9 GiB in memory, up to a "
      "minute before 1.2 GiB; its oom_score was 950); in data, step 812");
}

TEST(DeathsTest, SigkillFromElsewhereSaysThatTheKernelDidNot) {
  Process ended = EndBy("SIGKILL");
  EXPECT_EQ(DeathOf(ended).what, "SIGKILL") << "nothing is known of the kernel's count";
  ended.end->about.kills_are_known = true;
  EXPECT_THAT(DeathOf(ended).what, HasSubstr("the kernel has counted no kill for lack of memory"));
}

TEST(DeathsTest, SigbusOnAFullFilesystemIsAFullDisk) {
  Process ended = EndBy("SIGBUS");
  ended.end->about.full_filesystems = {"/dev/shm"};
  EXPECT_EQ(CauseOf(ended), "disk_full");
  EXPECT_EQ(DeathOf(ended).what, "SIGBUS, while /dev/shm was full");
  ended.end->exit = "SIGSEGV";
  EXPECT_EQ(CauseOf(ended), "crash");
}

TEST(DeathsTest, AnExceptionIsToldWithItsPlace) {
  const UncaughtException exception{
      .type = "ValueError", .message = "bad row", .where = "train.py:42 in load", .phase = "data"};
  Process ended = EndByException(exception);
  ended.phase = "other";  // it has left them all
  EXPECT_EQ(CauseOf(ended), "exception");
  EXPECT_EQ(SentenceOf(Dead(ended)), "ValueError: bad row (train.py:42 in load); in data");
}

// Such as SIGABRT of NCCL or CUDA, which are torn down after the exception, or SIGKILL of a launcher that does not wait.
TEST(DeathsTest, ASignalAfterAnUncaughtExceptionIsNotTheReason) {
  for (const char* exit : {"SIGABRT", "SIGSEGV", "SIGKILL", "SIGTERM"}) {
    Process ended = EndBy(exit);
    ended.end->exception = {.type = "ValueError", .message = "bad row", .where = "train.py:42 in load", .phase = "data"};
    ended.end->hung_for = seconds(94);
    EXPECT_EQ(CauseOf(ended), "exception") << exit;
    EXPECT_EQ(SentenceOf(Dead(ended)), "ValueError: bad row (train.py:42 in load), then " + std::string(exit) + "; in data");
  }
}

TEST(DeathsTest, AnExceptionThatTheProgramCaughtIsToldButNotTakenForTheReason) {
  Process ended = EndBy("exit_3");
  ended.end->exception = {
      .type = "ConnectionError", .message = "no wandb", .where = "a.py:1 in f", .phase = "data", .was_caught = true};
  ended.phase = "compute";
  EXPECT_EQ(CauseOf(ended), "exit_code");
  EXPECT_EQ(SentenceOf(Dead(ended)),
            "exit code 3; its last exception, which did not end it, was ConnectionError: no wandb "
            "(a.py:1 in f); in compute");
  ended.end->exit = "SIGKILL";
  ended.end->hung_for = seconds(94);
  EXPECT_EQ(CauseOf(ended), "hang");
  EXPECT_THAT(DeathOf(ended).what, HasSubstr("ConnectionError"));
}

TEST(DeathsTest, LackOfMemoryIsToldWithTheExceptionBeforeIt) {
  Process ended = EndByException({.type = "ValueError", .message = "bad row", .where = {}, .phase = {}});
  ended.end->exit = "SIGKILL";
  ended.end->about.killed_for_memory = true;
  EXPECT_EQ(CauseOf(ended), "out_of_memory");
  EXPECT_THAT(DeathOf(ended).what, HasSubstr("ValueError: bad row"));
}

TEST(DeathsTest, ExceptionsOfResourcesAreNamedAfterThem) {
  const auto cause_of = [](const char* type, const char* message, int error_number) {
    return CauseOf(EndByException({.type = type, .message = message, .where = {}, .phase = {}, .error_number = error_number}));
  };
  EXPECT_EQ(cause_of("MemoryError", "", 0), "out_of_memory");
  EXPECT_EQ(cause_of("_ArrayMemoryError", "Unable to allocate 9 TiB", 0), "out_of_memory") << "numpy's";
  EXPECT_EQ(cause_of("OSError", "Cannot allocate memory", ENOMEM), "out_of_memory");
  EXPECT_EQ(cause_of("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB", 0), "gpu_out_of_memory");
  EXPECT_EQ(cause_of("RuntimeError", "CUDA out of memory. Tried to allocate 2 GiB", 0), "gpu_out_of_memory");
  EXPECT_EQ(cause_of("OSError", "No space left on device", ENOSPC), "disk_full");
  EXPECT_EQ(cause_of("OSError", "Disk quota exceeded", EDQUOT), "disk_full");
  EXPECT_EQ(cause_of("OSError", "Too many open files", EMFILE), "limit");
  EXPECT_EQ(cause_of("FileNotFoundError", "No such file", ENOENT), "exception");
}

TEST(DeathsTest, AnExitWithAllDescriptorsUsedIsALimit) {
  Process ended = EndBy("exit_1");
  ended.end->about.max_open_files = 1024;
  ended.end->about.open_files = 900;
  EXPECT_EQ(CauseOf(ended), "exit_code");
  ended.end->about.open_files = 1024;
  EXPECT_EQ(CauseOf(ended), "limit");
}

TEST(DeathsTest, ALimitIsToldWithItsValue) {
  Process ended = EndBy("SIGXCPU");
  ended.end->about.max_cpu_seconds = 2;
  EXPECT_EQ(DeathOf(ended).what, "SIGXCPU: it used up its processor time (its limit is 2 s)");
}

TEST(DeathsTest, AHangEndedFromOutsideIsTheCause) {
  for (const char* exit : {"SIGKILL", "SIGTERM"}) {
    Process ended = EndBy(exit);
    ended.end->hung_for = seconds(94);
    EXPECT_EQ(CauseOf(ended), "hang") << exit;
    EXPECT_THAT(DeathOf(ended).what, HasSubstr("it hung for 94 s, then " + std::string(exit)));
  }
  Process ended = EndBy("SIGSEGV");
  ended.end->hung_for = seconds(94);
  EXPECT_EQ(CauseOf(ended), "crash");
}

TEST(DeathsTest, EveryCauseHasANameAndEveryDeathSaysWhatToLookAt) {
  for (size_t i = 0; i < kDeathCauses; ++i) EXPECT_NE(Name(static_cast<DeathCause>(i)), "") << i;
  for (const char* exit : {"SIGKILL", "SIGSEGV", "SIGTERM", "SIGXCPU", "SIGHUP", "exit_3", "unknown"}) {
    EXPECT_THAT(DeathOf(EndBy(exit)).look_at, EndsWith(".")) << exit;
  }
}

TEST(DeathsTest, CleanExitsAndDataLoadersAreNoDeaths) {
  EXPECT_FALSE(IsDeath("exit_0", 0));
  EXPECT_FALSE(IsDeath(kExitOfUnknownCode, 0));
  EXPECT_FALSE(IsDeath("", 0));
  EXPECT_TRUE(IsDeath(kUnknownEnd, 0));
  EXPECT_FALSE(IsDeath(kUnknownEnd, 1)) << "a data loader ends by _exit";
  EXPECT_FALSE(IsDeath("SIGTERM", 1)) << "a pool of multiprocessing ends its processes so";
  EXPECT_TRUE(IsDeath("SIGTERM", 0));
  EXPECT_TRUE(IsDeath("SIGKILL", 1));
  EXPECT_TRUE(IsDeath("SIGSEGV", 1));
  EXPECT_TRUE(IsDeath(kUnknownEnd, 1, true)) << "the kernel killed it";
}

bool Follows(const Process& ended, const std::optional<Interruption>& interruption) {
  return IsConsequence(DeathOf(ended), ended, interruption);
}

TEST(DeathsTest, WhatASignalToTheJobEndsFollowsFromIt) {
  const Interruption asked{.signal = "SIGTERM", .at = ProcessEnd::TimePoint(seconds(1000))};
  const auto ends_at = [](Process ended, milliseconds at) {
    ended.end->at = ProcessEnd::TimePoint(at);
    return ended;
  };
  for (const char* exit : {"SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "exit_1", "exit_143", "unknown"}) {
    EXPECT_TRUE(Follows(ends_at(EndBy(exit), seconds(1001)), asked)) << exit;
    EXPECT_TRUE(Follows(ends_at(EndBy(exit), milliseconds(999'950)), asked)) << exit << ": the collection had begun";
    EXPECT_FALSE(Follows(ends_at(EndBy(exit), seconds(999)), asked)) << exit;
    EXPECT_FALSE(Follows(ends_at(EndBy(exit), seconds(1001)), {})) << exit;
  }
  for (const char* exit : {"SIGSEGV", "SIGABRT", "SIGXCPU"}) {
    EXPECT_FALSE(Follows(ends_at(EndBy(exit), seconds(1001)), asked)) << exit;
  }
  Process killed = EndBy("SIGKILL");
  killed.end->about.killed_for_memory = true;
  EXPECT_FALSE(Follows(ends_at(killed, seconds(1001)), asked));
  Process hung = EndBy("SIGTERM");
  hung.end->hung_for = seconds(94);
  EXPECT_FALSE(Follows(ends_at(hung, seconds(1001)), asked));
}

TEST(DeathsTest, AnExceptionFollowsFromASignalThatCameBeforeIt) {
  const Interruption asked{.signal = "SIGTERM", .at = ProcessEnd::TimePoint(std::chrono::microseconds(1'000'000'900))};
  const auto raised_at = [](milliseconds at) {
    Process ended = EndByException({.type = "ConnectionError", .raised_at = ProcessEnd::TimePoint(at)});
    ended.end->at = ProcessEnd::TimePoint(seconds(1001));
    return ended;
  };
  EXPECT_TRUE(Follows(raised_at(milliseconds(1'000'000)), asked)) << "in the same millisecond";
  EXPECT_FALSE(Follows(raised_at(milliseconds(999'999)), asked));
  EXPECT_TRUE(Follows(raised_at(milliseconds(0)), asked)) << "its time is not known";
}

TEST(DeathsTest, ALauncherThatTellsOfItsRanksFollowsThem) {
  Process ended = EndByException({.type = "ChildFailedError"});
  EXPECT_FALSE(Follows(ended, {}));
  ended.identity.labels = {{"instance", "rep_0"}, {"role", "launcher"}};
  EXPECT_TRUE(Follows(ended, {}));
  ended.end->exception->type = "RendezvousConnectionError";
  EXPECT_FALSE(Follows(ended, {}));
}

TEST(DeathsTest, APlaceIsToldOnlyIfItIsKnown) {
  EXPECT_EQ(PlaceOf(Dead(EndBy("SIGSEGV"))), "");
  Process ended = EndBy("SIGSEGV");
  ended.phase = "other";
  EXPECT_EQ(PlaceOf(Dead(ended)), "outside of its phases");
  EXPECT_THAT(PlaceOf(Dead(ended)), Not(HasSubstr("step")));
}

}  // namespace
}  // namespace persia::agent
