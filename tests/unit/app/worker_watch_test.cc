#include "app/worker_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "captured_log.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WorkerWatchTest : public ::testing::Test {
 protected:
  // Collections over this time.
  void Look(seconds time, seconds interval, size_t live = 0) {
    SegmentSourceStats stats;
    stats.live = live;
    for (const auto end = now_ + time; now_ < end; now_ += interval) watch_->Look(stats, now_);
  }

  CapturedLog log_;
  std::optional<WorkerWatch> watch_{WorkerWatch::Options{.directory = "/dev/shm/job"}};
  Clock::TimePoint now_{seconds(1000)};
};

TEST_F(WorkerWatchTest, TheDirectoryIsNamedIfNoWorkerComes) {
  Look(seconds(20), seconds(1));
  EXPECT_THAT(log_.Messages(), IsEmpty()) << "programs import for as long";
  Look(seconds(100), seconds(1));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("no worker's metrics are in /dev/shm/job yet")));
  Look(seconds(1), seconds(1), 1);
  EXPECT_THAT(log_.Infos(), ElementsAre(HasSubstr("the first worker has started, after 120 s")));
}

TEST_F(WorkerWatchTest, ThreeCollectionsAreAwaited) {
  Look(seconds(120), seconds(60));
  EXPECT_THAT(log_.Messages(), IsEmpty());
  Look(seconds(60), seconds(60));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("PERSIA_METRICS_DIR=/dev/shm/job")));
}

TEST_F(WorkerWatchTest, NothingIsSaidOfAWorkerThatComesInTime) {
  Look(seconds(15), seconds(1));
  Look(seconds(100), seconds(1), 1);
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

TEST_F(WorkerWatchTest, AJobThatNeedsNoWorkerHasNone) {
  watch_.emplace(WorkerWatch::Options{.directory = "/dev/shm/job", .expects_workers = false});
  Look(seconds(100), seconds(1));
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
