// The job's directory: created and checked, locked by one agent, with the file agent.conf for workers that the agent did not
// start.
//
//   Result<JobDirectory> directory = JobDirectory::Open({.path = "/dev/shm/persia-metrics-0/dlrm"});
//   const auto holder = directory.value().Lock();
//   directory.value().WriteConf({.run_id = "3f2a", .job = "dlrm"});
//
// Other users may have created files in the directory: no symbolic link in it is followed.
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/owned_fd.h"
#include "base/result.h"

namespace persia::agent {

// The content of agent.conf; its format is in the library's job_directory.h.
struct AgentConf {
  bool enabled = true;
  std::string run_id = {};
  std::string job = {};
  bool ended = false;  // the run is over: the next agent starts another one
  // Of a job that `exec` started; both are compared only.
  std::string starter = {};               // the supervisor's process
  std::string command = {};               // a hash of the command
  std::string web = {};                   // the URL of the agent's page; empty: there is none
  std::optional<int> state_replica = {};  // in the names of the state's files in `state_dir` (job/state_name.h)
  int attempt = 0;                        // of the run, from 1 on; 0: not known
  int64_t run_began = 0;                  // in seconds since 1970; 0: not known

  friend bool operator==(const AgentConf&, const AgentConf&) = default;
};

struct LockHolder {
  uint32_t pid = 0;       // 0: it has not written it yet
  bool collects = false;  // and will do so once more: it neither prepares a job nor is ending
};

// The number of a group that is given by name or number; null if the text is empty.
Result<std::optional<gid_t>> FindGroup(const std::string& group);

class JobDirectory {
 public:
  struct Options {
    std::string path;  // absolute
    // Its members share the directory (mode 2770); empty: only this user has access (0700).
    std::string group = {};
    bool create = true;
  };

  // Creates the directory and its parent if they are missing. The library's trusted_directory.h says which ones are refused.
  static Result<JobDirectory> Open(const Options& options);

  // The same, but creates nothing.
  static Result<JobDirectory> OpenExisting(const std::string& path, const std::string& group = {});

  // Locks the directory for the life of this object. If another agent holds the lock, returns its pid as that agent wrote it.
  Result<std::optional<std::string>> Lock(const std::string& name = "agent.lock");

  // The agent that holds the lock, as it wrote it; null if none does.
  [[nodiscard]] std::optional<LockHolder> Holder() const;

  // Several `exec` of one run: one agent collects, the others wait until it has ended, to go on where it was. The supervisor of
  // each locks a byte of a file, at its Record::began_ns, as long as it lives. Creates the file, and returns its path.
  Result<std::string> FileOfOthers();
  // Whether there is another supervisor than the one with this place; 0: any.
  [[nodiscard]] bool HasOthers(uint64_t own_place) const;
  // Tells those who wait that this agent collects, by a read lock instead of a write lock on the first byte; `false`: that what
  // happens from now on may be in none of its collections. REQUIRES: locked.
  void NoteCollecting(bool collects);

  // Whether the directory was removed, or another one is at its path; or whether the locked file was: a second agent would find
  // no lock. Cleaners of old files remove it, since its content does not change.
  [[nodiscard]] bool WasRemoved() const;
  // Opens or creates the directory at the path again, and locks it. fd() keeps its number, so that its users need no update.
  // REQUIRES: locked before. Any thread, one at a time.
  Status Recreate();

  // A missing or unreadable file gives the defaults.
  [[nodiscard]] AgentConf ReadConf() const;
  // Replaces the file atomically. It is on disk when this returns.
  Status WriteConf(const AgentConf& conf);

  // The filesystem, if it is one on a disk. There, while the kernel writes a page of a segment back, a worker that stores to it
  // waits.
  [[nodiscard]] std::optional<std::string> DiskFilesystem() const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return directory_.get(); }
  // The group of a shared directory.
  [[nodiscard]] std::optional<gid_t> group() const { return group_; }

 private:
  Options options_;
  std::string path_;
  OwnedFd directory_;
  OwnedFd lock_;
  std::string lock_name_;
  bool collects_ = false;
  std::optional<gid_t> group_;
};

// The name of a filesystem on a disk, by the `f_type` of statfs; nothing for any other.
std::optional<std::string> DiskFilesystemOf(long type);

// 16 random hexadecimal digits.
std::string MakeRunId();

}  // namespace persia::agent
