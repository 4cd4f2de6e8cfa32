// What ends a role: an error, with its context; or a request to stop that came before there was anything to finish.
#pragma once

#include <stdexcept>

namespace embedding_job {

// Something went wrong. The text carries context and cause, quotes the bad input, and says what to do.
class JobError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The peer closed the connection, or the network did.
class ConnectionLost : public JobError {
 public:
  using JobError::JobError;
};

// A stop was asked for while this role was still looking for its peers. Not a failure.
class StoppedEarly : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped before the job began"; }
};

}  // namespace embedding_job
