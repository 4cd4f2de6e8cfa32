// A small file that outlives the agent and is replaced atomically: whenever the process is killed, the file has the old or the
// new content. (A state whose writers must not wait for the disk is a journal: journal_writer.h.)
//
//   StateFile file({.directory_fd = fd, .directory = "/var/lib/persia", .name = "dlrm.series",
//                   .magic = {'P', 'R', 'S', 'M', 'R', 'W', 'S', '\n'}, .version = 1});
//   std::string set_aside;
//   auto payload = file.Read(set_aside);        // nullopt: there is none
//   Status written = file.Write(new_payload);
//
// A file that cannot be parsed is renamed to `<name>.broken-<n>` and never overwritten: it may have the only copy of its
// content. Thread safety: none. REQUIRES: the caller holds the directory's lock, so that there is one StateFile of a name.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "files/durable_file.h"

namespace persia::agent {

class StateFile {
 public:
  struct Options {
    int directory_fd = -1;  // must stay open while the StateFile exists
    std::string directory;  // for messages
    std::string name;
    std::array<char, 8> magic{};  // identifies the kind of state
    uint32_t version = 1;         // of the payload; a file of another version is not read
    mode_t mode = 0600;           // regardless of the umask
    // For tests, which kill the process after a step of Write ("draft made", "draft written", "draft on disk", "renamed").
    std::function<void(std::string_view step)> after_step = {};
  };

  explicit StateFile(Options options) : options_(std::move(options)) {}

  // Returns the payload without changing anything. Null if there is no file, or a broken one; then `broken` says why. An error
  // if the file cannot be read: it may be intact.
  Result<std::optional<std::string>> Look(std::string& broken) const;
  // Returns the payload. Null if there is no file, or a broken one, which is then renamed; `set_aside` says why, and its new
  // name. An error if the file cannot be read, or is broken and cannot be renamed: the next Write would replace it.
  Result<std::optional<std::string>> Read(std::string& set_aside);
  // The payload is on disk when Write returns. After an error the file has its old content.
  Status Write(std::string_view payload);
  // Renames a file whose payload the caller cannot parse. Returns a message for the log.
  std::string SetAside(std::string_view why);
  // No error if there is no file.
  Status Remove() { return RemoveDurable(File()); }

  [[nodiscard]] std::string path() const { return File().path(); }

 private:
  [[nodiscard]] DurableFile File() const { return {options_.directory_fd, options_.directory, options_.name}; }

  const Options options_;
};

}  // namespace persia::agent
