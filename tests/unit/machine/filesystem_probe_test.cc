#include "machine/filesystem_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fake_machine.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr milliseconds kLong = seconds(30);

// A filesystem that hangs until it is let go.
class Hanging {
 public:
  ~Hanging() { LetGo(); }
  FilesystemProbe::Statvfs Call() {
    return [gate = gate_.get_future().share(), calls = calls_](const std::string&, struct statvfs&) {
      ++*calls;
      gate.wait();
      return EIO;
    };
  }
  void LetGo() {
    if (!open_) gate_.set_value();
    open_ = true;
  }
  [[nodiscard]] int calls() const { return *calls_; }

 private:
  std::promise<void> gate_;
  bool open_ = false;
  const std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

std::map<std::string, double> ProbeValues(const FilesystemProbe& probe, FilesystemProbe::TimePoint now) {
  MachineReading reading;
  probe.Read(now, reading);
  return ValuesOf(reading.TakeSorted());
}

const FilesystemProbe::TimePoint kAsked{seconds(100)};

TEST(FilesystemProbeTest, ShowsTheSpaceForUsersWithoutPrivileges) {
  FilesystemProbe probe("state", [](const std::string& path, struct statvfs& info) {
    info = {};
    info.f_frsize = 10;
    info.f_blocks = 100;
    info.f_bfree = 50;
    info.f_bavail = 40;
    info.f_files = 7;
    info.f_ffree = 6;
    info.f_favail = 5;
    return path == "/state" ? 0 : EIO;
  });
  probe.Ask("/state", kAsked);
  probe.Await(kLong);
  EXPECT_THAT(ProbeValues(probe, kAsked), UnorderedElementsAre(Pair("persia_filesystem_size_bytes{use=state}", 1000),
                                                               Pair("persia_filesystem_avail_bytes{use=state}", 400),
                                                               Pair("persia_filesystem_files{use=state}", 7),
                                                               Pair("persia_filesystem_files_free{use=state}", 5),
                                                               Pair("persia_filesystem_device_error{use=state}", 0)));
}

TEST(FilesystemProbeTest, AFilesystemThatHangsIsAValue) {
  Hanging hanging;
  FilesystemProbe probe("state", hanging.Call());
  probe.Ask("/state", kAsked);
  probe.Await(milliseconds(0));
  EXPECT_THAT(ProbeValues(probe, kAsked + seconds(4)), IsEmpty()) << "it may still answer";
  const auto late = kAsked + FilesystemProbe::kDeadline;
  EXPECT_THAT(ProbeValues(probe, late), ElementsAre(Pair("persia_filesystem_device_error{use=state}", 1)));
  // It is not asked again, nor waited for, while it hangs.
  for (int i = 0; i < 5; ++i) {
    probe.Ask("/state", late);
    probe.Await(kLong);
  }
  EXPECT_LE(hanging.calls(), 1);
  EXPECT_THAT(ProbeValues(probe, late), ElementsAre(Pair("persia_filesystem_device_error{use=state}", 1)));
}

TEST(FilesystemProbeTest, ItMayBeDestroyedWhileTheFilesystemHangs) {
  Hanging hanging;
  std::optional<FilesystemProbe> probe(std::in_place, "state", hanging.Call());
  probe->Ask("/state", kAsked);
  probe.reset();
  hanging.LetGo();
}

TEST(FilesystemProbeTest, AnErrorIsAValueAndAMissingDirectoryIsNone) {
  for (const auto& [error, shown] :
       {std::pair{EIO, true}, {ESTALE, true}, {ENOTCONN, true}, {ENOENT, false}, {EACCES, false}}) {
    FilesystemProbe probe("state", [error = error](const std::string&, struct statvfs&) { return error; });
    EXPECT_THAT(ProbeValues(probe, kAsked), IsEmpty()) << "not asked yet";
    probe.Ask("/state", kAsked);
    probe.Await(kLong);
    if (shown) {
      EXPECT_THAT(ProbeValues(probe, kAsked), ElementsAre(Pair("persia_filesystem_device_error{use=state}", 1))) << error;
    } else {
      EXPECT_THAT(ProbeValues(probe, kAsked), IsEmpty()) << error;
    }
  }
}

}  // namespace
}  // namespace persia::agent
