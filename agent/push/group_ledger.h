// The groups that this agent may have made on a gateway: it deletes these and no others.
//
// The file `agent.groups` has a group before the first PUT of it, so that an agent that is killed at any instruction knows all
// its groups when it starts again. The file also has the agent's random, permanent id, which distinguishes agents with the same
// identity. It also records whether this agent adds a label `agent` to its groups because another agent holds the identity.
//
// Thread safety: any method, from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "files/journal_writer.h"
#include "model/snapshot.h"

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
    int directory_fd = -1;  // outlives the ledger
    std::string directory;  // for messages
    std::string name = "agent.groups";
    mode_t mode = 0600;
    std::string run_id;
    std::chrono::milliseconds patience{250};  // how long a change waits for the disk
  };

  // Reads the file. A broken one is renamed and logged, and the ledger is empty.
  explicit GroupLedger(Options options);

  // 16 hexadecimal digits.
  [[nodiscard]] const std::string& agent_id() const { return agent_id_; }
  // Whether the groups of this agent have the label agent="<id>", since another agent has the plain ones. Holds for the run.
  [[nodiscard]] bool adds_agent_label() const { return adds_agent_label_; }
  // Also removes the groups without the label: from now on they may be the other agent's.
  void AddAgentLabel();

  [[nodiscard]] std::set<Group> groups() const;
  // On disk when it returns, unless the disk fails or hangs. Such a failure is logged, and the next change or Flush tries
  // again.
  void Add(const std::vector<Group>& groups);
  void Remove(const std::vector<Group>& groups);
  // Writes the file if it lacks a change, or was missing at the last Flush: the journal's thread checks that it exists, since
  // the check may hang.
  void Flush();

 private:
  bool Parse(std::string_view payload) PERSIA_REQUIRES(mutex_);
  void OpenFile() PERSIA_REQUIRES(mutex_);
  void Save() PERSIA_REQUIRES(mutex_);

  const Options options_;
  std::string agent_id_;  // set by the constructor
  std::atomic<bool> adds_agent_label_ = false;
  mutable Mutex mutex_;
  std::shared_ptr<JournalFile> file_ PERSIA_GUARDED_BY(mutex_);
  std::unique_ptr<JournalWriter> writer_ PERSIA_GUARDED_BY(mutex_);
  std::set<Group> groups_ PERSIA_GUARDED_BY(mutex_);
  bool unsaved_ PERSIA_GUARDED_BY(mutex_) = false;
  bool save_failure_logged_ PERSIA_GUARDED_BY(mutex_) = false;
};

}  // namespace persia::agent
