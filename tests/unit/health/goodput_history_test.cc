// Random lives of a rank, whose agents die at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "health/goodput.h"
#include "health/goodput_world.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Nanoseconds = Goodput::Nanoseconds;

// Random lives of a rank, looks and deaths of agents, against what is known of them.
class GoodputHistory {
 public:
  explicit GoodputHistory(uint32_t seed) : random_(seed) {}

  void Run() {
    MakeLives();
    Nanoseconds now{0};
    const Nanoseconds end = processes_.back().ended + seconds(1);
    while (now < end) {
      now += milliseconds(Draw(1, 4000));
      if (Draw(0, 9) == 0) KillAgent();
      Look(now, /*saves=*/Draw(0, 3) != 0);
    }
    Look(end + seconds(10), /*saves=*/true);
    Check();
  }

 private:
  int Draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void MakeLives() {
    const std::vector<std::string> phases = {"data", "forward", "sync", "checkpoint", "other", "rendezvous"};
    Nanoseconds at = milliseconds(Draw(0, 3000));
    double checkpoint = 0;
    for (int life = Draw(1, 6); life > 0; --life) {
      KnownProcess& process = processes_.emplace_back();
      process.id = "p" + std::to_string(life);
      process.began = at;
      at += milliseconds(Draw(0, 300));
      double step = checkpoint;
      for (int stretch = Draw(0, 30); stretch > 0; --stretch) {
        process.stretches.push_back({phases[static_cast<size_t>(Draw(0, 5))], at});
        at += milliseconds(Draw(1, 500));
        if (Draw(0, 2) == 0) {
          process.steps.emplace_back(at, step++);
          if (Draw(0, 3) == 0) checkpoint = step;
        }
        at += milliseconds(Draw(1, 500));
      }
      process.ended = at;
      process.exit = life == 1 || Draw(0, 2) == 0 ? "exit_0" : "SIGKILL";
      at += milliseconds(Draw(0, 3) == 0 ? 0 : Draw(30, 5000));
    }
  }

  void KillAgent() {
    goodput_ = Goodput();
    if (auto accounts = DecodeGoodput(disk_, kClocks)) goodput_.Restore(*std::move(accounts));
    folded_ = folded_on_disk_;
    CheckReport();
  }

  void Look(Nanoseconds now, bool saves) {
    std::vector<RankProcess> read;
    for (KnownProcess& process : processes_) {
      if (process.began > now || folded_.contains(process.id)) continue;
      read.push_back(process.Read(now, seen_));
      if (!read.back().alive) folded_.insert(process.id);
    }
    goodput_.Look(read, {}, {.now = now});
    if (!saves) return;
    disk_ = EncodeGoodput(goodput_.accounts(), kClocks);
    folded_on_disk_ = folded_;
    seen_ = now;
    goodput_.Saved();
    CheckReport();
  }

  void CheckReport() {
    const GoodputReport::Rank total = goodput_.report()->Total();
    for (size_t i = 0; i < kBuckets; ++i) EXPECT_GE(total.time[i], shown_.time[i]) << Name(static_cast<Bucket>(i));
    EXPECT_GE(total.redone_steps, shown_.redone_steps);
    EXPECT_GE(total.restarts, shown_.restarts);
    EXPECT_GE(total.repair, shown_.repair);
    shown_ = total;
  }

  void Check() {
    Nanoseconds all{0};
    Nanoseconds unknown{0};
    uint64_t redone = 0;
    uint64_t restarts = 0;
    std::optional<double> reached;
    const KnownProcess* before = nullptr;
    for (const KnownProcess& process : processes_) {
      all += process.ended - process.began;
      if (before != nullptr && !before->IsClean()) {
        all += process.began - before->ended;
        ++restarts;
      }
      // Of one that has exited unseen it is not known when it entered its first phase, nor when it ended if it entered none.
      if (process.IsClean()) {
        unknown += process.stretches.empty() ? process.ended - process.began : process.stretches.front().from - process.began;
      }
      for (const auto& [at, step] : process.steps) redone += reached && step <= *reached ? 1 : 0;
      if (!process.steps.empty()) reached = std::max(reached.value_or(0), process.steps.back().second);
      before = &process;
    }
    const GoodputReport::Rank total = goodput_.report()->Total();
    EXPECT_LE(Sum(total.time), all);
    EXPECT_GE(Sum(total.time), all - unknown);
    EXPECT_EQ(total.redone_steps, redone);
    EXPECT_EQ(total.restarts, restarts);
  }

  std::mt19937 random_;
  std::vector<KnownProcess> processes_;
  Goodput goodput_;
  std::set<std::string> folded_;
  std::string disk_;
  std::set<std::string> folded_on_disk_;
  Nanoseconds seen_{0};
  GoodputReport::Rank shown_;
};

TEST(GoodputHistoryTest, ThousandsOfLivesAddUp) {
  for (uint32_t seed = 0; seed < 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GoodputHistory(seed).Run();
  }
}

}  // namespace
}  // namespace persia::agent
