// The job's directory, as its agent sees it: made and checked, locked by one agent, and with the word that the agent leaves
// there for workers that it did not start.
//
//   Result<JobDirectory> directory = JobDirectory::Open({.path = "/dev/shm/persia-metrics-0/dlrm"});
//   const auto other = directory.value().Lock();        // nobody, or who has it
//   directory.value().WriteConf({.run_id = "3f2a", .job = "dlrm"});
//
// Whatever stands in the directory may come from somebody else: nothing in it is followed when it is a link.
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "model/result.h"

namespace persia::agent {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.Release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int Release();

 private:
  int fd_ = -1;
};

// What agent.conf says (job_directory.h of the library has its format).
struct AgentConf {
  bool enabled = true;
  std::string run_id = {};
  std::string job = {};
  bool ended = false;  // the run is over: the next agent begins another one

  friend bool operator==(const AgentConf&, const AgentConf&) = default;
};

class JobDirectory {
 public:
  struct Options {
    std::string path;  // absolute
    // Members may share the directory (2770); empty: this user alone (0700).
    std::string group = {};
    // The parent is made for this user alone as well, and must be.
    bool private_parent = false;
    bool make = true;
  };

  // Makes the directory, and its parent, if they are missing. Links on the way are followed only where root or this user made
  // them. A directory that others could write to is refused.
  static Result<JobDirectory> Open(const Options& options);

  // The same without making anything.
  static Result<JobDirectory> OpenExisting(const std::string& path);

  // Becomes the directory's agent for as long as this object lives; or says which process is (its pid, as it wrote it).
  Result<std::optional<std::string>> Lock(const std::string& name = "agent.lock");

  // Whether somebody removed the directory, or put another one in its place.
  [[nodiscard]] bool Gone() const;
  // Makes and locks what is at the path now; fd() is of that from then on, with the same number, so that whoever uses it has
  // it too. REQUIRES: locked before. Any thread, one at a time.
  Status Renew();

  // A missing or unreadable file gives the defaults.
  [[nodiscard]] AgentConf ReadConf() const;
  // Replaces the file as a whole.
  Status WriteConf(const AgentConf& conf);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return directory_.get(); }
  // Of a shared directory.
  [[nodiscard]] std::optional<gid_t> group() const { return group_; }

 private:
  Options options_;
  std::string path_;
  OwnedFd directory_;
  OwnedFd lock_;
  std::string lock_name_;
  std::optional<gid_t> group_;
};

// An id for a run that has none: 16 random hexadecimal digits.
std::string MakeRunId();

}  // namespace persia::agent
