// The common part of state files and journals: a file that is read whole, replaced atomically, and renamed if it cannot be
// used.
//
// Thread safety: functions without a state. REQUIRES: the caller holds the directory's lock, so that nothing else writes the
// file.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/owned_fd.h"
#include "base/result.h"

namespace persia::agent {

// A larger file is not an agent's state and would exhaust its memory.
inline constexpr size_t kMaxStateBytes = 1ULL << 30;
// Of a file that has a short text for each process, group or kind of error.
inline constexpr size_t kMaxListBytes = 8ULL << 20;

struct DurableFile {
  int directory_fd = -1;
  std::string directory;  // for messages
  std::string name;
  size_t max_bytes = kMaxStateBytes;  // that ReadDurable reads
  bool is_flushed = true;             // else a power cut may lose what ReplaceDurable writes

  [[nodiscard]] std::string path() const { return directory + "/" + name; }
};

// The whole file. Null if there is no file, or none of at most max_bytes that is trusted (trusted_file.h); then `broken`
// says why. An error if it cannot be read: it may be intact.
Result<std::optional<std::string>> ReadDurable(const DurableFile& file, std::string& broken);

// Of the draft of a file that ReplaceDurable writes.
inline constexpr char kDraftSuffix[] = ".draft";

// Makes `bytes` the whole content, on disk when it returns; returns the file, open for writing at its
// end. Whenever the process or the machine is killed, the file has the old or the new content; after an error it has the old
// one. `after_step` is called after the steps "draft made", "draft written", "draft on disk", "renamed".
Result<OwnedFd> ReplaceDurable(const DurableFile& file, mode_t mode, std::string_view bytes,
                               const std::function<void(std::string_view step)>& after_step);

// False: an error, see errno; some of `bytes` may have been written.
bool WriteAll(int fd, std::string_view bytes);

// Renames the file to `<name>.broken-<n>`, which nothing overwrites. `message`, for the log: `why`, then the new name or the
// error. False: the file still has its name.
bool SetAsideDurable(const DurableFile& file, std::string_view why, std::string& message);

// No power cut brings the file back. No error if there is no file.
Status RemoveDurable(const DurableFile& file);

}  // namespace persia::agent
