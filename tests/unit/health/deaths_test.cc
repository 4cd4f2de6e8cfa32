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

#include "model/exit_reason.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

ProcessEnd EndBy(const std::string& exit) {
  ProcessEnd end;
  end.identity = {"dlrm", {{"instance", "rep_3"}, {"role", "trainer"}}};
  end.exit = exit;
  return end;
}

ProcessEnd EndByException(const UncaughtException& exception) {
  ProcessEnd end = EndBy("exit_1");
  end.exception = exception;
  return end;
}

std::string CauseOf(const ProcessEnd& end) { return std::string(Name(DeathOf(end).cause)); }

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
    ProcessEnd end = EndBy(exit);
    end.about.killed_for_memory = true;
    EXPECT_EQ(CauseOf(end), "out_of_memory") << exit;
  }
  ProcessEnd other = EndBy("SIGSEGV");
  other.about.killed_for_memory = true;
  EXPECT_EQ(CauseOf(other), "crash") << "the kernel kills by SIGKILL";
}

TEST(DeathsTest, LackOfMemoryIsToldWithTheLimitAndTheTrend) {
  ProcessEnd end = EndBy("SIGKILL");
  end.phase = "data";
  end.step = 812;
  end.about = {.killed_for_memory = true,
               .memory_cgroup = "/job",
               .memory_limit = 4096 * kMiB,
               .resident = 3993 * kMiB,
               .resident_before = 1229 * kMiB,
               .oom_score = 950};
  EXPECT_EQ(
      SentenceOf(DeathOf(end)),
      "killed by the kernel for lack of memory (the limit of its cgroup /job is 4.0 GiB; it had 3.9 GiB in memory, up to a "
      "minute before 1.2 GiB; its oom_score was 950); in data, step 812");
}

TEST(DeathsTest, SigkillFromElsewhereSaysThatTheKernelDidNot) {
  ProcessEnd end = EndBy("SIGKILL");
  EXPECT_EQ(DeathOf(end).what, "SIGKILL") << "nothing is known of the kernel's count";
  end.about.kills_are_known = true;
  EXPECT_THAT(DeathOf(end).what, HasSubstr("the kernel has counted no kill for lack of memory"));
}

TEST(DeathsTest, SigbusOnAFullFilesystemIsAFullDisk) {
  ProcessEnd end = EndBy("SIGBUS");
  end.about.full_filesystems = {"/dev/shm"};
  EXPECT_EQ(CauseOf(end), "disk_full");
  EXPECT_EQ(DeathOf(end).what, "SIGBUS, while /dev/shm was full");
  end.exit = "SIGSEGV";
  EXPECT_EQ(CauseOf(end), "crash");
}

TEST(DeathsTest, AnExceptionIsToldWithItsPlace) {
  const UncaughtException exception{
      .type = "ValueError", .message = "bad row", .where = "train.py:42 in load", .phase = "data"};
  ProcessEnd end = EndByException(exception);
  end.phase = "other";  // it has left them all
  EXPECT_EQ(CauseOf(end), "exception");
  EXPECT_EQ(SentenceOf(DeathOf(end)), "ValueError: bad row (train.py:42 in load); in data");
}

// Such as SIGABRT of NCCL or CUDA, which are torn down after the exception, or SIGKILL of a launcher that does not wait.
TEST(DeathsTest, ASignalAfterAnUncaughtExceptionIsNotTheReason) {
  for (const char* exit : {"SIGABRT", "SIGSEGV", "SIGKILL", "SIGTERM"}) {
    ProcessEnd end = EndBy(exit);
    end.exception = {.type = "ValueError", .message = "bad row", .where = "train.py:42 in load", .phase = "data"};
    end.hung_for = seconds(94);
    EXPECT_EQ(CauseOf(end), "exception") << exit;
    EXPECT_EQ(SentenceOf(DeathOf(end)), "ValueError: bad row (train.py:42 in load), then " + std::string(exit) + "; in data");
  }
}

TEST(DeathsTest, AnExceptionThatTheProgramCaughtIsToldButNotTakenForTheReason) {
  ProcessEnd end = EndBy("exit_3");
  end.exception = {
      .type = "ConnectionError", .message = "no wandb", .where = "a.py:1 in f", .phase = "data", .was_caught = true};
  end.phase = "compute";
  EXPECT_EQ(CauseOf(end), "exit_code");
  EXPECT_EQ(SentenceOf(DeathOf(end)),
            "exit code 3; its last exception, which did not end it, was ConnectionError: no wandb "
            "(a.py:1 in f); in compute");
  end.exit = "SIGKILL";
  end.hung_for = seconds(94);
  EXPECT_EQ(CauseOf(end), "hang");
  EXPECT_THAT(DeathOf(end).what, HasSubstr("ConnectionError"));
}

TEST(DeathsTest, LackOfMemoryIsToldWithTheExceptionBeforeIt) {
  ProcessEnd end = EndByException({.type = "ValueError", .message = "bad row", .where = {}, .phase = {}});
  end.exit = "SIGKILL";
  end.about.killed_for_memory = true;
  EXPECT_EQ(CauseOf(end), "out_of_memory");
  EXPECT_THAT(DeathOf(end).what, HasSubstr("ValueError: bad row"));
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
  ProcessEnd end = EndBy("exit_1");
  end.about.max_open_files = 1024;
  end.about.open_files = 900;
  EXPECT_EQ(CauseOf(end), "exit_code");
  end.about.open_files = 1024;
  EXPECT_EQ(CauseOf(end), "limit");
}

TEST(DeathsTest, ALimitIsToldWithItsValue) {
  ProcessEnd end = EndBy("SIGXCPU");
  end.about.max_cpu_seconds = 2;
  EXPECT_EQ(DeathOf(end).what, "SIGXCPU: it used up its processor time (its limit is 2 s)");
}

TEST(DeathsTest, AHangEndedFromOutsideIsTheCause) {
  for (const char* exit : {"SIGKILL", "SIGTERM"}) {
    ProcessEnd end = EndBy(exit);
    end.hung_for = seconds(94);
    EXPECT_EQ(CauseOf(end), "hang") << exit;
    EXPECT_THAT(DeathOf(end).what, HasSubstr("it hung for 94 s, then " + std::string(exit)));
  }
  ProcessEnd end = EndBy("SIGSEGV");
  end.hung_for = seconds(94);
  EXPECT_EQ(CauseOf(end), "crash");
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

bool Follows(const ProcessEnd& end, const std::optional<Interruption>& interruption) {
  return IsConsequence(DeathOf(end), end, interruption);
}

TEST(DeathsTest, WhatASignalToTheJobEndsFollowsFromIt) {
  const Interruption asked{.signal = "SIGTERM", .at = Death::TimePoint(seconds(1000))};
  const auto ends_at = [](ProcessEnd end, milliseconds at) {
    end.ended_at = Death::TimePoint(at);
    return end;
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
  ProcessEnd killed = EndBy("SIGKILL");
  killed.about.killed_for_memory = true;
  EXPECT_FALSE(Follows(ends_at(killed, seconds(1001)), asked));
  ProcessEnd hung = EndBy("SIGTERM");
  hung.hung_for = seconds(94);
  EXPECT_FALSE(Follows(ends_at(hung, seconds(1001)), asked));
}

TEST(DeathsTest, AnExceptionFollowsFromASignalThatCameBeforeIt) {
  const Interruption asked{.signal = "SIGTERM", .at = Death::TimePoint(std::chrono::microseconds(1'000'000'900))};
  const auto raised_at = [](milliseconds at) {
    ProcessEnd end = EndByException({.type = "ConnectionError", .raised_at = Death::TimePoint(at)});
    end.ended_at = Death::TimePoint(seconds(1001));
    return end;
  };
  EXPECT_TRUE(Follows(raised_at(milliseconds(1'000'000)), asked)) << "in the same millisecond";
  EXPECT_FALSE(Follows(raised_at(milliseconds(999'999)), asked));
  EXPECT_TRUE(Follows(raised_at(milliseconds(0)), asked)) << "its time is not known";
}

TEST(DeathsTest, ALauncherThatTellsOfItsRanksFollowsThem) {
  ProcessEnd end = EndByException({.type = "ChildFailedError"});
  EXPECT_FALSE(Follows(end, {}));
  end.identity.labels = {{"instance", "rep_0"}, {"role", "launcher"}};
  EXPECT_TRUE(Follows(end, {}));
  end.exception->type = "RendezvousConnectionError";
  EXPECT_FALSE(Follows(end, {}));
}

TEST(DeathsTest, APlaceIsToldOnlyIfItIsKnown) {
  EXPECT_EQ(PlaceOf(DeathOf(EndBy("SIGSEGV"))), "");
  ProcessEnd end = EndBy("SIGSEGV");
  end.phase = "other";
  EXPECT_EQ(PlaceOf(DeathOf(end)), "outside of its phases");
  EXPECT_THAT(PlaceOf(DeathOf(end)), Not(HasSubstr("step")));
}

}  // namespace
}  // namespace persia::agent
