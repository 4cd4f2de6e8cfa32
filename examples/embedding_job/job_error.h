// Exceptions that end a role: an error, or an early request to stop.
#pragma once

#include <exception>
#include <stdexcept>

namespace embedding_job {

// The text has context and cause, quotes the bad input, and says what to do.
class JobError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The peer closed the connection, or the network did.
class ConnectionLost : public JobError {
 public:
  using JobError::JobError;
};

// A stop was requested while this role was still connecting to its peers. Not a failure.
class StoppedEarly : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped before the job began"; }
};

}  // namespace embedding_job
