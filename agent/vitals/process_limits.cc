#include "vitals/process_limits.h"

#include "files/kernel_text.h"

namespace persia::agent {

// "Max open files            1024                 4096                 files": the soft limit is the first one.
ProcessLimits ParseLimits(std::string_view text) {
  return {.cpu_seconds = NumberOf(text, "Max cpu time"),
          .file_bytes = NumberOf(text, "Max file size"),
          .open_files = NumberOf(text, "Max open files"),
          .address_space = NumberOf(text, "Max address space")};
}

}  // namespace persia::agent
