// Processes of a job whose time a test sets: each Look is one collection.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/process.h"

namespace persia::agent {

class JobWorld {
 public:
  using Seconds = std::chrono::seconds;

  // Process `rank` starts, in place of the former one with this rank.
  Process& Start(uint32_t rank, const std::string& role = "trainer") {
    while (processes.size() <= rank) {
      Process process;
      process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(processes.size())}, {"role", role}}};
      processes.push_back(std::move(process));
    }
    Process& process = processes[rank];
    process.predecessors += process.id.pid != 0 && process.alive ? 1 : 0;
    process.alive = true;
    process.id.pid = ++next_pid_;
    process.id.start_ticks = next_pid_;
    process.changes = 0;
    process.died = false;
    return process;
  }
  void End(uint32_t rank, const std::string& exit, bool died) {
    Process& process = processes[rank];
    process.alive = false;
    ++process.predecessors;
    process.last_exit = exit;
    process.died = died;
    TellEnd(rank, exit);
  }
  // Its end, and the start of its successor, between two collections.
  Process& Replace(uint32_t rank, const std::string& exit) {
    processes[rank].last_exit = exit;
    TellEnd(rank, exit);
    return Start(rank);
  }
  Process& TellEnd(uint32_t rank, const std::string& exit) {
    const Process& process = processes[rank];
    ends.push_back(
        {.id = process.id, .ordinal = process.ordinal, .identity = process.identity, .end = ProcessEnd{.exit = exit}});
    return ends.back();
  }
  // These ranks record values.
  void Change(const std::vector<uint32_t>& ranks) {
    for (const uint32_t rank : ranks) ++processes[rank].changes;
  }

  std::vector<Process> processes;
  std::vector<Process> ends;  // since the last Look
  std::chrono::steady_clock::time_point now{Seconds(1000)};

 private:
  uint32_t next_pid_ = 100;
};

}  // namespace persia::agent
