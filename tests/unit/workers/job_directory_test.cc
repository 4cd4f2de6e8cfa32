#include "workers/job_directory_test.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace persia::agent::testing {
namespace {

std::string Text(double value) {
  if (std::bit_cast<uint64_t>(value) == kAbsent) {
    return "absent";
  }
  std::array<char, 32> buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string LabelOf(const Labels& labels, const std::string& name) {
  for (const auto& label : labels) {
    if (label.first == name) {
      return label.second;
    }
  }
  return "";
}

}  // namespace

std::map<std::string, std::string> Flatten(const Snapshot& snapshot) {
  std::map<std::string, std::string> out;
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series) {
      std::string key = family.name;
      for (const auto& [name, value] : series.labels) {
        key.append(key.ends_with('"') ? "," : "{").append(name).append("=\"").append(value).append("\"");
      }
      key += series.labels.empty() ? "" : "}";
      const Labels& identity = snapshot.layout->identities.at(series.identity).labels;
      const std::string who = LabelOf(identity, "instance") + "/" + LabelOf(identity, "role");
      key += who == "rep_0/worker" ? "" : "@" + who;
      std::string value = Text(snapshot.values.at(series.first_value));
      for (size_t i = 1; i < family.ValuesPerSeries(); ++i) {
        value += (i == 1 ? ": " : " ") + Text(snapshot.values.at(series.first_value + i));
      }
      if (family.name == "persia_metrics_dropped_total" && value == "0") {
        continue;
      }
      if (!out.emplace(key, value).second) {
        throw std::runtime_error("the snapshot has the series " + key + " twice");
      }
    }
  }
  return out;
}

WriterLock::WriterLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fd_ < 0 || fcntl(fd_, F_OFD_SETLK, &lock) != 0) {
    throw std::runtime_error("cannot lock " + path);
  }
}

WriterLock::~WriterLock() { close(fd_); }

void JobDirectoryTest::PutText(const std::string& name, const std::string& bytes) const {
  std::ofstream file(PathOf(name), std::ios::binary | std::ios::trunc);
  file << bytes;
}

void JobDirectoryTest::Remove(const std::string& name) const { std::filesystem::remove(PathOf(name)); }

SegmentSource& JobDirectoryTest::source() {
  if (source_ == nullptr) {
    UseOptions({});
  }
  return *source_;
}

void JobDirectoryTest::UseOptions(SegmentSourceOptions options) {
  options.directory = directory();
  options.job = "dlrm";
  source_ = std::make_unique<SegmentSource>(std::move(options), naming_);
}

std::shared_ptr<const Snapshot> JobDirectoryTest::Collect() { return source().Collect(); }

std::vector<std::string> JobDirectoryTest::Diagnosed() {
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : source().TakeDiagnostics()) {
    out.push_back(diagnostic.kind + ": " + diagnostic.text);
  }
  return out;
}

}  // namespace persia::agent::testing
