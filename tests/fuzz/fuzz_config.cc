// Any bytes as a config file: errors and notes in one line that names the file, or a config.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const persia::agent::Config config = persia::agent::ParseConfig("f.yaml", text);
  for (const auto& lines : {config.ErrorTexts(), config.notes}) {
    for (const std::string& line : lines) {
      if (!line.starts_with("f.yaml:") || line.find('\n') != std::string::npos) {
        std::abort();
      }
    }
  }
  return 0;
}
