// Writes to the named pipe of `emit`, for C++ and Python.
//
// Thread safety: any thread. A call that waits holds no lock, so that other threads, signal handlers and forked children do not
// wait for it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "persia/metrics/emit.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {

// The variable's value; `fallback` if it is not set or empty.
std::string EnvOr(const char* name, const char* fallback);

// Joins entries of JSON objects (`"name": 1.5`) into lines, each an object of at most `limit` bytes with its newline. Leaves
// out an entry that fits into no line; `*too_long` is set to the first such entry.
std::vector<std::string> EmitLines(std::span<const std::string> entries, size_t limit, std::string* too_long);

struct PipeResult {
  EmitStatus status = EmitStatus::kDone;
  int error = 0;          // its number; ETIMEDOUT: no pipe or no reader in time
  std::string path = {};  // of the pipe. Empty: the error is not of a pipe
  std::string text = {};  // what failed, and what to do: it follows the path
};

// Writes the entries, in lines that a pipe takes whole, to the pipe that the environment names. The first call waits for the
// pipe and its reader, each call while the pipe is full. A wait ends with EINTR if `interrupted`, which may be empty, returns
// true; it is called when a signal has arrived. Throws nothing of its own.
PipeResult WriteToPipe(std::span<const std::string> entries, const std::function<bool()>& interrupted);

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
