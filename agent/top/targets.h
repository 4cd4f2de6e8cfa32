// Where the agents are that `top` asks: addresses of the command line, or the jobs of this user on this host.
//
//   TargetFinder finder(addresses);                  // empty: the local jobs
//   std::vector<Target> targets = finder.Find();     // may wait for the resolver
//
// Thread safety: none; one thread calls Find.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

struct Target {
  std::string name;       // as shown; unique
  std::string url{};      // "http://127.0.0.1:19091"; empty: there is nothing to ask
  std::string problem{};  // why not
  bool ended = false;     // the run is over, or nothing of it runs

  friend bool operator==(const Target&, const Target&) = default;
};

// An error quotes the address, without what may be secret in it.
Status CheckTopAddress(std::string_view address);

class TargetFinder {
 public:
  // `addresses`: "host:port", http and https URLs, "dns+name[:port]". REQUIRES: CheckTopAddress accepts each.
  // `jobs`: the folder of the local jobs, for no address.
  TargetFinder(std::vector<std::string> addresses, std::string jobs);

  // The targets by now. Local jobs that run, and addresses of a name: those that were found once are kept, so that a job that
  // ended stays visible.
  std::vector<Target> Find();

 private:
  void AddName(const std::string& address);
  void AddLocalJobs();
  void Put(Target target);

  const std::vector<std::string> addresses_;
  const std::string jobs_;
  std::vector<Target> found_;
};

// The folder of this user's jobs.
std::string LocalJobsFolder();

}  // namespace persia::agent
