// A directory with files like those of /proc and /sys, and the values that are read from them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "machine/machine_reading.h"
#include "temporary_directory.h"

namespace persia::agent {

class FakeMachine {
 public:
  [[nodiscard]] const std::string& root() const { return directory_.path(); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(root() + path); }

 private:
  const TemporaryDirectory directory_;
};

// By `name{label=value}`.
inline std::map<std::string, double> ValuesOf(const std::vector<MachineReading::Series>& series) {
  std::map<std::string, double> values;
  for (const MachineReading::Series& each : series) {
    std::string name(each.family->name);
    for (const auto& [label, value] : each.labels) {
      name.append(name.find('{') == std::string::npos ? "{" : ",").append(label).append("=").append(value);
    }
    if (!each.labels.empty()) name += "}";
    EXPECT_TRUE(values.emplace(name, each.value).second) << name << " occurs twice";
  }
  return values;
}

}  // namespace persia::agent
