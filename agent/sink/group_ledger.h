// Which groups this agent may have made on a gateway: those and no others are its to end.
//
// Kept in the file `agent.groups`, and on disk before the first PUT of a group, so that an agent that is killed at whatever
// instruction knows all its groups when it starts again. With them the agent's id, made up once, by which agents that claim one
// identity are told apart, and whether this one stands aside for another.
//
// Thread safety: all of it, from any thread: the agent's gateways share it, and each has a thread of its own.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "sink/sink_log.h"
#include "state/state_file.h"

namespace persia::agent {

class GroupLedger {
 public:
  struct Group {
    std::string gateway;  // its base URL
    Identity identity;    // the grouping key

    friend bool operator==(const Group&, const Group&) = default;
    friend auto operator<=>(const Group&, const Group&) = default;
  };

  struct Options {
    int directory_fd = -1;  // stays open as long as the ledger lives
    std::string directory;  // for messages
    std::string name = "agent.groups";
    mode_t mode = 0600;
    std::string run_id;
    SinkLog log;
  };

  // Reads the file. A broken one is set aside with a word in the log, and the ledger is empty.
  explicit GroupLedger(Options options);

  // 16 hexadecimal digits.
  [[nodiscard]] const std::string& agent_id() const { return agent_id_; }
  // Whether the groups of this agent carry its id in their key, since another agent has the plain ones. Holds for the run.
  [[nodiscard]] bool stands_aside() const { return stands_aside_; }
  void StandAside();

  // As they are now.
  [[nodiscard]] std::set<Group> groups() const;
  // On disk when it returns; if that fails, the log says so, and it is tried again with the next change or Flush.
  void Add(const std::vector<Group>& groups);
  void Remove(const std::vector<Group>& groups);
  // Writes what could not be written before, and all if the file is gone.
  void Flush();

 private:
  bool Parse(const std::string& payload);
  void Save();  // under mutex_

  const Options options_;
  std::string agent_id_;  // as the constructor found or made it
  std::atomic<bool> stands_aside_ = false;
  mutable std::mutex mutex_;  // guards what follows
  StateFile file_;
  std::set<Group> groups_;
  bool unsaved_ = false;
  bool save_failed_ = false;  // and that was said
};

}  // namespace persia::agent
