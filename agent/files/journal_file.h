// The file operations of a journal. A test may replace them, to fail or to end at any of them.
//
// Thread safety: none; used by one thread at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/owned_fd.h"
#include "base/result.h"
#include "files/durable_file.h"

namespace persia::agent {

class JournalFile {
 public:
  virtual ~JournalFile() = default;

  // The whole file; null if there is none, or none of a size that is read and that is trusted: then `broken` says why. An
  // error: it exists, and may be intact.
  virtual Result<std::optional<std::string>> Read(std::string& broken) = 0;
  // Makes `bytes` the whole content, on disk when it returns. Whenever the process or the machine is killed, the file has the
  // old or the new content; after an error it has the old one.
  virtual Status Replace(std::string_view bytes) = 0;
  // Adds `bytes` at the end, on disk when it returns. After an error, or if killed meanwhile, any prefix of `bytes` may have
  // been added; after a power cut, any of its pages, the others zero. Without bytes it only checks whether the file still
  // exists. REQUIRES: this object's last Replace or Append succeeded, and there was a Replace.
  virtual Status Append(std::string_view bytes) = 0;
  // Renames the file so that nothing overwrites it. `message`, for the log: `why`, then the new name or the error. False: an
  // error; the file still has its name.
  virtual bool SetAside(std::string_view why, std::string& message) = 0;
  // No error if there is no file.
  virtual Status Remove() = 0;

  // For messages.
  [[nodiscard]] virtual std::string path() const = 0;
};

class DiskJournalFile : public JournalFile {
 public:
  struct Options {
    int directory_fd = -1;  // duplicated
    std::string directory;  // for messages
    std::string name;
    mode_t mode = 0600;  // regardless of the umask
    // For tests, which kill the process after a step: "draft made", "draft written", "draft on disk", "renamed" of Replace;
    // "appended", "append on disk" of Append.
    std::function<void(std::string_view step)> after_step = {};
    size_t max_bytes = kMaxStateBytes;  // that Read reads
  };

  explicit DiskJournalFile(Options options);

  Result<std::optional<std::string>> Read(std::string& broken) override;
  Status Replace(std::string_view bytes) override;
  Status Append(std::string_view bytes) override;
  bool SetAside(std::string_view why, std::string& message) override;
  Status Remove() override;
  [[nodiscard]] std::string path() const override { return file_.path(); }

 private:
  [[nodiscard]] Error NoDirectory() const;

  const mode_t mode_;
  const std::function<void(std::string_view step)> after_step_;
  const OwnedFd directory_;
  const int directory_error_;  // if it could not be duplicated: errno
  const DurableFile file_;
  OwnedFd append_to_;  // the file of the last Replace
};

}  // namespace persia::agent
