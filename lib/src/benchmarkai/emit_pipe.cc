#include "emit_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "descriptor.h"
#include "trusted_file.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {
namespace {

std::optional<gid_t> TrustedGroup() {
  const char* const value = std::getenv("PERSIA_METRICS_DIR_GROUP");
  const std::string_view text(value == nullptr ? "" : value);
  gid_t group = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), group);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(group) : std::nullopt;
}

}  // namespace

int OpenPipe(const std::string& path, int& error, std::string& why) {
  const StandardDescriptorsTaken taken;
  // A blocking open of a pipe without a reader would wait forever.
  Descriptor pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!pipe.valid() || fstat(pipe.get(), &info) != 0) {
    error = errno;
    return -1;
  }
  why = DistrustOf(info, {.type = S_IFIFO, .group = TrustedGroup(), .may_have_names = true});
  if (!why.empty()) {
    error = S_ISFIFO(info.st_mode) ? EPERM : EINVAL;
    why +=
        "; set BENCHMARK_AI_FIFO_FILEPATH to a pipe of this user or, to trust a pipe's group, PERSIA_METRICS_DIR_GROUP to "
        "the group's number";
    return -1;
  }
  fcntl(pipe.get(), F_SETFL, fcntl(pipe.get(), F_GETFL) & ~O_NONBLOCK);
  return pipe.Release();
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
