// Finds and loads libnvidia-ml.so.1. Only the reader's process loads it (gpu_reader.h).
//
// Thread safety: none.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "gpu/nvml_abi.h"

namespace persia::agent {

// Where the dynamic linker, or a container's or distribution's driver package, has the library: a path, or the plain name if
// the linker's cache lists it; empty: it is not installed. Loads nothing. `root` and `variable` are for tests.
std::string FindNvml(const std::filesystem::path& root = "/",
                     const std::function<const char*(const char* name)>& variable = nullptr);

class NvmlLibrary {
 public:
  // A function that the library lacks is null, except those without which there are no devices: then an error.
  Status Load(const std::string& file);
  [[nodiscard]] const nvml::Functions& call() const { return functions_; }

 private:
  nvml::Functions functions_{};
};

// "the driver is not loaded", for messages.
std::string NvmlErrorText(nvml::Return error);

}  // namespace persia::agent
