// Any bytes as a config file: an error in one line that names the file, or a config.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const persia::agent::Config config = persia::agent::ParseConfig("f.yaml", text);
  for (const std::string& error : config.ErrorTexts()) {
    if (!error.starts_with("f.yaml:") || error.find('\n') != std::string::npos) {
      std::abort();
    }
  }
  return 0;
}
