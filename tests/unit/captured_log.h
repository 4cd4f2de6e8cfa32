// The log's lines, read from stderr while the object lives.
//
//   CapturedLog log;
//   ...
//   EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("refuses")));
//
// Thread safety: any method, from any thread, also while others log. One object at a time.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/owned_fd.h"

namespace persia::agent {

class CapturedLog {
 public:
  CapturedLog() { dup2(file_.get(), STDERR_FILENO); }
  ~CapturedLog() { dup2(stderr_.get(), STDERR_FILENO); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // The messages so far, in order, also those that a forked process logged.
  [[nodiscard]] std::vector<std::string> Warnings() const { return OfLevel(" warning: "); }
  [[nodiscard]] std::vector<std::string> Infos() const { return OfLevel(" info: "); }
  [[nodiscard]] std::vector<std::string> Messages() const { return OfLevel(": "); }
  // The same as one text.
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const std::string& message : Messages()) text += message + '\n';
    return text;
  }

 private:
  [[nodiscard]] std::vector<std::string> OfLevel(const std::string& level) const {
    std::string text;
    char bytes[4096];
    while (true) {
      const ssize_t n = pread(file_.get(), bytes, sizeof bytes, static_cast<off_t>(text.size()));
      if (n <= 0) break;
      text.append(bytes, static_cast<size_t>(n));
    }
    std::vector<std::string> messages;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      // 2026-11-22T19:00:00.000+00:00 persia-metrics-agent warning: MESSAGE
      const size_t colon = line.find(": ");
      if (colon != std::string::npos && line.substr(0, colon + 2).ends_with(level)) messages.push_back(line.substr(colon + 2));
    }
    return messages;
  }

  const OwnedFd file_{memfd_create("log", MFD_CLOEXEC)};
  const OwnedFd stderr_{fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)};
};

}  // namespace persia::agent
