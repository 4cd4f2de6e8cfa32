// Opens the named pipe of `emit`, for C++ and Python.
// Thread safety: any thread.
#pragma once

#include <string>

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {

// Opens a named pipe that has a reader, for writing. Its owner could read what is emitted: another user's is refused, unless
// its group is PERSIA_METRICS_DIR_GROUP. Returns a descriptor that blocks, or -1 and the error number; after EINVAL (no pipe)
// and EPERM (another user's), `why` follows the path in a message.
int OpenPipe(const std::string& path, int& error, std::string& why);

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
