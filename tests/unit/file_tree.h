// Files below a directory of a test's own, which stands for /proc or /sys/fs/cgroup.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {

class FileTree {
 public:
  void Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  void Remove(const std::string& name) { std::filesystem::remove_all(directory_ / name); }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace persia::agent
