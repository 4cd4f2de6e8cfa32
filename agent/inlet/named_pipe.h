// The reading end of a named pipe, in lines.
//
// It is open for writing as well, so that the last writer's leaving is not its end: writers come and go. A line that is longer
// than the limit is given up at its next newline. Thread safety: Read and Drain by one thread; the rest of it needs none.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace persia::agent {

class NamedPipe {
 public:
  struct Options {
    std::string path;
    // Behind each line that Read gives there are so many bytes that may be read.
    size_t padding = 0;
    // Of a line, without its newline.
    size_t max_line_bytes = 1 << 20;
  };
  // Called with each line, without its newline; with a null `data()` for one that was given up.
  using OnLine = std::function<void(std::string_view line)>;

  // Makes the pipe, readable by this user alone but writable by all who may reach its directory, or takes the one that is
  // there. What is not a pipe, or not ours to read, is refused.
  static Result<std::unique_ptr<NamedPipe>> Open(Options options);
  // Removes the pipe if it was made here.
  ~NamedPipe();
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Reads what is there, at most a buffer's worth. False: there was nothing.
  bool Read(const OnLine& on_line);
  // Reads all that is there, and takes what is left without a newline for a line.
  void Drain(const OnLine& on_line);

 private:
  NamedPipe(Options options, int fd, bool made);

  const Options options_;
  const int fd_;
  const bool made_;
  std::vector<char> buffer_;
  size_t used_ = 0;        // bytes of a line that has no end yet
  bool given_up_ = false;  // until the next newline
};

}  // namespace persia::agent
