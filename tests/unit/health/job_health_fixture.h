// A job of three ranks for tests of JobHealth. Each 10 seconds of Run are one collection.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "health/job_health.h"
#include "health/job_world.h"

namespace persia::agent {

class JobHealthTest : public ::testing::Test, protected JobWorld {
 protected:
  void Look() {
    health_.Look(processes, {.steady = now,
                             .wall = Wall(),
                             .has_command = has_command_,
                             .exit_code = exit_code_,
                             .began = began_,
                             .interruption = interruption_,
                             .any_has_ended = any_has_ended_,
                             .ends = ends,
                             .exit_of = [this](const Process&) { return told_later_; },
                             .is_stopped = [this](const Process& process) { return process.id == stopped_; }});
    ends.clear();
  }
  void Run(std::chrono::seconds time, const std::vector<uint32_t>& changing = {}) {
    for (std::chrono::seconds left = time; left.count() > 0; left -= std::chrono::seconds(10)) {
      now += std::chrono::seconds(10);
      Change(changing);
      Look();
    }
  }
  [[nodiscard]] HealthReport::TimePoint Wall() const {
    return HealthReport::TimePoint(std::chrono::duration_cast<HealthReport::TimePoint::duration>(now.time_since_epoch()));
  }
  // A job of three ranks that has been running for 100 seconds.
  void StartJob() {
    Look();
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
    Run(std::chrono::seconds(100), {0, 1, 2});
    static_cast<void>(health_.TakeEvents());
    log_.emplace();
  }
  std::string State() { return std::string(Name(health_.report()->state)); }
  std::string StateOf(uint32_t rank) {
    return std::string(Name(health_.report()->workers.at({"trainer", "rep_" + std::to_string(rank), "0"}).state));
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> texts;
    for (const auto& reason : health_.report()->reasons) texts.push_back(reason.kind + ": " + reason.text);
    return texts;
  }
  std::vector<std::string> Events() {
    std::vector<std::string> names;
    for (const JobEvent& event : health_.TakeEvents()) {
      EXPECT_EQ(event.type, "persia.agent");
      EXPECT_GT(event.unix_ms, 0U);
      names.push_back(event.name);
    }
    return names;
  }

  std::optional<CapturedLog> log_{std::in_place};
  JobHealth health_;
  bool has_command_ = true;
  std::optional<int> exit_code_;
  std::optional<HealthReport::TimePoint> began_;
  std::optional<Interruption> interruption_;
  bool any_has_ended_ = false;
  std::string told_later_;
  std::optional<ProcessId> stopped_;
};

}  // namespace persia::agent
