// A collector with its state, which restarts while processes start and end; with a settable clock.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "workers/job_directory_test.h"

namespace persia::agent::testing {

using Flat = std::map<std::string, std::string>;

// Calls `after_step` once a file is removed.
class SteppingDirectory : public DiskSegmentDirectory {
 public:
  SteppingDirectory(std::string path, std::function<void(std::string_view)> after_step)
      : DiskSegmentDirectory(std::move(path)), after_step_(std::move(after_step)) {}
  Removal Remove(const std::string& name, const FileId& file) override {
    const Removal removed = DiskSegmentDirectory::Remove(name, file);
    after_step_("removed");
    return removed;
  }

 private:
  const std::function<void(std::string_view)> after_step_;
};

class RetiredTest : public JobDirectoryTest {
 protected:
  // A process of the job, until End().
  struct Worker {
    Worker(RetiredTest& test, const SegmentIdentity& identity) : test(test), name(std::to_string(test.processes_++) + ".seg") {
      segment.Identity(identity);
    }
    Worker& Put() {
      test.JobDirectoryTest::Put(name, segment);
      if (!lock) {
        lock = std::make_unique<WriterLock>(test.PathOf(name));
      }
      return *this;
    }
    void End() { EndWith(segment::kExitCode); }
    // By SIGKILL.
    void Die() { EndWith(segment::kNoExit); }
    // `mark`: an ExitMark.
    void EndWith(uint64_t mark) {
      segment.header().exit = mark;
      Put();
      lock.reset();
    }

    RetiredTest& test;
    const std::string name;
    SegmentBuilder segment;
    std::unique_ptr<WriterLock> lock;
  };

  RetiredTest() : directory_fd_(open(directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) { StartAgent(); }
  ~RetiredTest() override { close(directory_fd_); }

  // Another agent, or the same one again.
  void StartAgent(std::function<void(std::string_view)> after_step = {}) {
    SegmentSourceOptions options;
    options.run_id = run_id_;
    options.limits = limits_;
    options.reaped = reaped_;
    options.ledger = LedgerOptions();
    options.ledger.file = StateFile(after_step);
    if (after_step) {
      options.files = std::make_unique<SteppingDirectory>(directory(), after_step);
    }
    if (files_) options.files = files_();
    options.steady = [this] { return Steady(); };
    options.wall = [this] {
      return std::chrono::system_clock::time_point(std::chrono::seconds(1'800'000'000) + passed_ + wall_set_);
    };
    UseOptions(std::move(options));
  }

  Ledger::Options LedgerOptions() {
    return {.saves_living = saves_living_,
            .run_id = run_id_,
            .new_run = new_run_,
            .processes = {.gauge_ttl = std::chrono::seconds(300), .hide_ended = hide_ended_, .limits = limits_},
            .patience = std::chrono::seconds(20),
            .now = [this] { return Steady(); }};
  }
  std::shared_ptr<JournalFile> StateFile(std::function<void(std::string_view)> after_step = {}) {
    return std::make_shared<DiskJournalFile>(DiskJournalFile::Options{
        .directory_fd = directory_fd_, .directory = directory(), .name = "agent.state", .after_step = std::move(after_step)});
  }

  std::unique_ptr<Worker> Start(const SegmentIdentity& identity = {.role = "worker"}) {
    return std::make_unique<Worker>(*this, identity);
  }
  // One that counts and ends, seen alive or not.
  void CountAndEnd(uint64_t whole, double fraction = 0, const SegmentIdentity& identity = {.role = "worker"}) {
    auto process = Start(identity);
    process->segment.Counter("my_app", "batches", {}, whole, fraction);
    process->Put().End();
  }
  // The series once another process without dropped counts has ended.
  std::string CountAndEndThenShow(const std::string& series) {
    CountAndEnd(1);
    return Shown(series);
  }
  // One that lives and has set a gauge.
  std::unique_ptr<Worker> StartWithGauge(double value, GaugePolicy policy = GaugePolicy::kLast) {
    auto process = Start();
    process->segment.Gauge("my_app", "size", {}, value, policy);
    process->Put();
    return process;
  }
  std::string Shown(const std::string& series) {
    const Flat flat = CollectFlat();
    return flat.contains(series) ? flat.at(series) : "";
  }
  std::string Batches() { return Shown("my_app_batches"); }
  std::string Size() { return Shown("my_app_size"); }
  // The size of a checkpoint of the whole state.
  size_t CheckpointBytes() {
    Collect();  // writes that files were removed
    source().ledger().MoveTo(StateFile());
    Collect();
    return std::filesystem::file_size(PathOf("agent.state"));
  }
  // Calls `run` with 10 to 39. From `settled` on the state does not grow.
  void ExpectNoGrowth(const std::function<void(int)>& run, int settled) {
    for (int number = 10; number < settled; ++number) {
      run(number);
    }
    const size_t bytes = CheckpointBytes();
    for (int number = settled; number < 40; ++number) {
      run(number);
    }
    EXPECT_LE(CheckpointBytes(), bytes);
  }
  // Names of the files in the directory, except the state.
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      if (entry.path().filename() != "agent.state") {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }

  [[nodiscard]] std::chrono::steady_clock::time_point Steady() const {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(1000) + passed_);
  }

  std::string run_id_ = "run-1";
  bool new_run_ = false;
  bool hide_ended_ = true;
  bool saves_living_ = false;
  SeriesLimits limits_;
  const ExitReasons* reaped_ = nullptr;
  std::function<std::unique_ptr<SegmentDirectory>()> files_;  // of the next agent; none: the directory's
  std::chrono::seconds passed_{0};
  std::chrono::seconds wall_set_{0};  // by how much the wall clock was set
  const int directory_fd_;

 private:
  int processes_ = 0;
};

}  // namespace persia::agent::testing
