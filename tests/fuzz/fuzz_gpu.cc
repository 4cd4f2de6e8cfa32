// What the process that reads GPUs writes may be anything: the agent takes messages or refuses the bytes, and each message that
// it takes can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gpu/gpu_sample.h"

namespace {

using namespace persia::agent;

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  GpuMessages messages;
  messages.Add({reinterpret_cast<const char*>(data), size});
  for (GpuMessage message;;) {
    const Result<bool> next = messages.Next(message);
    if (!next.ok() || !next.value()) return 0;
    GpuMessages again;
    const std::string bytes = EncodeGpuMessage(message);
    again.Add(bytes);
    GpuMessage read;
    Require(again.Next(read).value() && EncodeGpuMessage(read) == bytes);
  }
}
