// The reading end of a named pipe, in lines.
//
// The pipe is open for writing as well, so that it does not end when its last writer closes it. A line that is longer than the
// limit is skipped up to its newline. Thread safety: Read and Drain: one thread; the rest: any.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/owned_fd.h"
#include "base/result.h"

namespace persia::agent {

// The directory of the default path of Benchmark AI's client library since September 2019.
inline constexpr char kClientDirectory[] = "/tmp/benchmark-ai";

class NamedPipe {
 public:
  struct Options {
    std::string path;
    // How many readable bytes follow each line that Read passes.
    size_t padding = 0;
    // Without the newline.
    size_t max_line_bytes = 1 << 20;
    // Removes the pipe at the end also if it was not created here.
    bool remove = false;
    // Whose members may write to a new pipe, and may have made one that exists.
    std::optional<gid_t> group = std::nullopt;
  };
  // Called with each line, without its newline; with a null `data()` for one that is skipped.
  using OnLine = std::function<void(std::string_view line)>;

  // Creates the pipe, or opens an existing one. A new pipe is for this user alone, and writable by the group if there is one;
  // who wants it otherwise makes it before. Any other file, another user's pipe, or one that this user may not read, is an
  // error. If the directory is missing, only kClientDirectory is created.
  static Result<std::unique_ptr<NamedPipe>> Open(Options options);
  // Whether a process has the pipe open for reading, and Open would not refuse it.
  static bool HasReader(const std::string& path, std::optional<gid_t> group = std::nullopt);
  // Removes the pipe if it was created here, unless Keep was called.
  ~NamedPipe();
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The pipe stays when this object ends. Returns whether it would have been removed.
  bool Keep() { return std::exchange(removes_, false); }
  // Reads at most 64 KiB from the pipe. False: the pipe was empty.
  bool Read(const OnLine& on_line);
  // Reads until the pipe is empty; a rest without a newline is a line, too.
  void Drain(const OnLine& on_line);

 private:
  NamedPipe(Options options, OwnedFd fd, bool removes);

  const Options options_;
  const OwnedFd fd_;
  bool removes_;
  std::vector<char> buffer_;
  size_t used_ = 0;        // bytes of a line without its newline yet
  bool skipping_ = false;  // up to the next newline
};

}  // namespace persia::agent
