// Random lives of a rank, whose agents die at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/goodput.h"
#include "health/goodput_world.h"
#include "model/ends.h"
#include "test_seed.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Nanoseconds = Goodput::Nanoseconds;

// Random lives of a rank, looks and deaths of agents, against what is known of them.
class GoodputHistory {
 public:
  explicit GoodputHistory(uint64_t seed) : random_(seed) {}

  void Run() {
    MakeLives();
    Nanoseconds now{0};
    const Nanoseconds end = processes_.back().ended + seconds(1);
    while (now < end) {
      now += milliseconds(Draw(1, 4000));
      if (Draw(0, 9) == 0) KillAgent();
      Look(now, /*saves=*/Draw(0, 3) != 0);
    }
    reads_ = true;
    Look(end + seconds(10), /*saves=*/true);
    Check();
  }

 private:
  int Draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void MakeLives() {
    const std::vector<std::string> phases = {"data", "forward", "sync", "checkpoint", "other", "rendezvous"};
    Nanoseconds at = milliseconds(Draw(10, 3000));  // a start of 0 is not known
    double checkpoint = 0;
    const int lives = Draw(1, 6);
    for (int life = lives; life > 0; --life) {
      KnownProcess process{.id = "p" + std::to_string(processes_.size()), .pid = static_cast<uint32_t>(life), .began = at};
      if (!processes_.empty() && processes_.back().replaced) {
        process.pid = processes_.back().pid;
        process.began = processes_.back().began;
        process.recorded = at;
      }
      at += milliseconds(Draw(0, 300));
      if (life == lives && Draw(0, 3) == 0) process.renamed = at;
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
      restart_counts_[process.id] = restart_count_;
      process.ended = at;
      process.exit = life == 1 || Draw(0, 2) == 0 ? "exit_0" : "SIGKILL";
      at += milliseconds(Draw(0, 3) == 0 ? 0 : Draw(30, 5000));
      if (life > 1 && Draw(0, 3) == 0) {
        process.exit = kReplacedProgram;
        process.replaced = at;
      } else if (process.exit == "SIGKILL" && Draw(0, 2) == 0) {
        LeaveOut(process.ended + (at - process.ended) / 2);
      }
      if (process.IsClean()) checkpoint = Draw(0, 1) == 0 ? 0 : checkpoint;
      processes_.push_back(process);
    }
  }

  // The launcher restarts the other rank of the role without this one, which comes back later.
  void LeaveOut(Nanoseconds at) {
    KnownProcess other{.rank = {"trainer", 1}, .id = "other" + std::to_string(others_.size()), .pid = 1000, .began = at};
    if (!others_.empty()) others_.back().ended = at;
    restart_counts_[other.id] = ++restart_count_;
    others_.push_back(other);
    left_out_.insert(processes_.size());
    ++restart_count_;
  }

  void KillAgent() {
    goodput_ = Goodput();
    if (auto accounts = DecodeGoodput(disk_, kClocks)) goodput_.Restore(*std::move(accounts));
    folded_ = folded_on_disk_;
    reads_ = Draw(0, 3) != 0;
    CheckReport();
  }

  void Look(Nanoseconds now, bool saves) {
    std::vector<Process> read;
    for (std::vector<KnownProcess>* const of : {&processes_, &others_}) {
      for (KnownProcess& process : *of) {
        if (!reads_ || process.Recorded() > now || folded_.contains(process.id)) continue;
        read.push_back(process.Read(now, seen_));
        read.back().restart_count = restart_counts_[process.id];
        if (!read.back().alive) folded_.insert(process.id);
      }
    }
    goodput_.Look(read, {}, {}, {.now = now});
    if (!reads_) read_nothing_at_ = now;
    if (!saves) return;
    disk_ = EncodeGoodput(goodput_.accounts(), kClocks);
    folded_on_disk_ = folded_;
    if (reads_) seen_ = now;
    goodput_.Saved();
    CheckReport();
  }

  void CheckReport() {
    const GoodputReport::Rank total = goodput_.report()->Total();
    for (size_t i = 0; i < kBuckets; ++i) EXPECT_GE(total.time[i], shown_.time[i]) << Name(static_cast<Bucket>(i));
    if (total.redone_steps && shown_.redone_steps) {
      EXPECT_GE(*total.redone_steps, *shown_.redone_steps);
    }
    EXPECT_GE(total.restarts, shown_.restarts);
    EXPECT_GE(total.repair, shown_.repair);
    shown_ = total;
  }

  void Check() {
    Nanoseconds all{0};
    Nanoseconds unknown{0};
    Nanoseconds unread{0};
    Nanoseconds entered{0};
    uint64_t redone = 0;
    bool may_be_unknown = false;  // a process without steps fails, before any of its program has some
    uint64_t restarts = 0;
    std::optional<double> reached;  // by the processes of the same program
    const KnownProcess* before = nullptr;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const KnownProcess& process = processes_[i];
      const bool goes_on = before != nullptr && before->replaced;
      const Nanoseconds began = goes_on ? before->ended : process.began;
      all += process.ended - began;
      if (before != nullptr && !goes_on && !before->IsClean()) {
        all += process.began - before->ended;
        // It is down at most until the others are restarted, if that is seen before it returns.
        if (left_out_.contains(i - 1)) unknown += (process.began - before->ended + Nanoseconds(1)) / 2;
        ++restarts;
      }
      // The time as a former rank is that until the last look before.
      if (process.renamed) {
        all += *process.renamed - process.began;
        unknown += *process.renamed - process.began;
      }
      // Of one that has exited unseen, only the last entry into a phase is known, of any of its programs.
      if (!goes_on) entered = process.began;
      if (!process.stretches.empty()) entered = process.stretches.back().from;
      if (process.IsClean()) {
        unknown += process.ended - entered;
        // While no agent can read it, a rank that had failed before stays down, also after the end of this process.
        const Nanoseconds next = i + 1 < processes_.size() ? processes_[i + 1].began : Nanoseconds::max();
        unread += std::max(std::min(read_nothing_at_, next) - process.ended, Nanoseconds(0));
      }
      if (before != nullptr && before->IsClean()) reached.reset();
      for (const auto& [at, step] : process.steps) redone += reached && step <= *reached ? 1 : 0;
      may_be_unknown = may_be_unknown || (!reached && process.steps.empty() && !process.IsClean());
      if (!process.steps.empty()) reached = std::max(reached.value_or(0), process.steps.back().second);
      before = &process;
    }
    GoodputReport::Rank total = goodput_.report()->Total();
    for (const GoodputReport::Rank& rank : goodput_.report()->ranks) {
      if (rank.rank.replica != 1) continue;
      for (size_t bucket = 0; bucket < kBuckets; ++bucket) total.time[bucket] -= rank.time[bucket];
      total.restarts -= rank.restarts;
    }
    EXPECT_LE(Sum(total.time), all + unread) << Lives();
    EXPECT_GE(Sum(total.time), all - unknown) << Lives();
    EXPECT_TRUE(total.redone_steps ? *total.redone_steps == redone : may_be_unknown) << Lives();
    EXPECT_EQ(total.restarts, restarts);
  }

  [[nodiscard]] std::string Lives() const {
    std::string lives;
    const auto add = [&](const char* name, Nanoseconds at) {
      lives += name + std::to_string(std::chrono::duration_cast<milliseconds>(at).count());
    };
    for (const KnownProcess& process : processes_) {
      lives += process.id + " " + process.exit;
      add(" began ", process.began);
      add(" ended ", process.ended);
      if (process.recorded) add(" recorded ", *process.recorded);
      if (process.replaced) add(" replaced ", *process.replaced);
      if (process.renamed) add(" renamed ", *process.renamed);
      if (!process.stretches.empty()) add(" last phase ", process.stretches.back().from);
      lives += "\n";
    }
    for (const KnownProcess& other : others_) add("the others restarted at ", other.began);
    for (const GoodputReport::Rank& rank : goodput_.report()->ranks) {
      add("\nrank has ", rank.AllTime());
      for (size_t i = 0; i < kBuckets; ++i) add(" ", rank.time[i]);
    }
    return lives;
  }

  std::mt19937_64 random_;
  std::vector<KnownProcess> processes_;
  std::vector<KnownProcess> others_;  // of the other rank
  std::map<std::string, uint32_t> restart_counts_;
  uint32_t restart_count_ = 0;
  std::set<size_t> left_out_;  // after the process with this index
  Goodput goodput_;
  bool reads_ = true;               // this agent: it refuses no segment
  Nanoseconds read_nothing_at_{0};  // the last look of one that refuses all
  std::set<std::string> folded_;
  std::string disk_;
  std::set<std::string> folded_on_disk_;
  Nanoseconds seen_{0};
  GoodputReport::Rank shown_;
};

TEST(GoodputHistoryTest, ThousandsOfLivesAddUp) {
  const uint64_t first = TestSeed() * 3000;
  for (uint64_t seed = first; seed < first + 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GoodputHistory(seed).Run();
  }
}

}  // namespace
}  // namespace persia::agent
