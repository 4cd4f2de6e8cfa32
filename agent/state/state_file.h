// One small file that outlives the agent, replaced as a whole: whoever is killed at whatever instruction, it holds the former
// content or the new one.
//
//   StateFile file({.directory_fd = fd, .directory = "/dev/shm/persia-metrics-0/dlrm", .name = "agent.state",
//                   .magic = {'P', 'R', 'S', 'M', 'S', 'T', 'A', '\n'}, .version = 1});
//   std::string set_aside;
//   auto payload = file.Read(set_aside);        // nullopt: there is none
//   Status written = file.Write(new_payload);
//
// What cannot be understood is renamed to `<name>.broken-<n>`, never overwritten: it may be all that is left of a run's counts.
// Thread safety: none. Two StateFiles on one name are the caller's mistake: whoever writes holds the directory's lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

class StateFile {
 public:
  struct Options {
    int directory_fd = -1;  // stays open as long as the StateFile lives
    std::string directory;  // for messages
    std::string name;
    std::array<char, 8> magic{};  // tells kinds of state apart
    uint32_t version = 1;         // of the payload; another one is not read
    mode_t mode = 0600;           // whatever the umask says
    // Called after each step of Write ("draft made", "draft written", "draft on disk", "renamed"), for tests that end the
    // process there.
    std::function<void(std::string_view step)> after_step = {};
  };

  explicit StateFile(Options options) : options_(std::move(options)) {}

  // The payload as last written, and nothing changed; nullopt if there is none that can be understood: then `broken` says why,
  // if there is a file at all. An error: it may be good, but cannot be read.
  Result<std::optional<std::string>> Look(std::string& broken) const;
  // The payload as last written; nullopt if there is no file, or none that can be understood: then `set_aside` is a sentence
  // that says what was wrong and where the file is now. An error: it may be good but cannot be read,
  // or it is broken and cannot be renamed; whoever writes then loses it.
  Result<std::optional<std::string>> Read(std::string& set_aside);
  // On disk when it returns. An error leaves the former content.
  Status Write(std::string_view payload);
  // Sets a file aside whose payload the caller does not understand. Returns the sentence for the log.
  std::string SetAside(std::string_view why);
  // No error if there is none.
  Status Remove();

  [[nodiscard]] std::string path() const { return options_.directory + "/" + options_.name; }

 private:
  void Step(std::string_view step) const {
    if (options_.after_step) {
      options_.after_step(step);
    }
  }

  const Options options_;
};

}  // namespace persia::agent
