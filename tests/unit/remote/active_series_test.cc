// The file of active series when it cannot be written or read for a while.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

#include "remote/snapshot_writer_fixture.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ActiveSeriesTest : public SnapshotWriterFixture {};

TEST_F(ActiveSeriesTest, AFailedSaveIsRepeatedWithTheNextSnapshot) {
  StartAgent();
  fs::create_directory(temporary_ / "series.draft");  // in the draft's place
  for (int64_t at : {1000, 2000}) Write({{"a", kGauge, 1}}, at);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("cannot write " + temporary_.path() + "/series")));
  fs::remove(temporary_ / "series.draft");
  Write({{"a", kGauge, 1}}, 3000);
  Lines();
  StartAgent();
  Write({{"b", kGauge, 1}}, 4000);
  EXPECT_THAT(Lines(), ElementsAre("b{job=dlrm} 1 @4000", "a{job=dlrm} stale @4000"));
  EXPECT_THAT(log_.Warnings(), SizeIs(1));
}

TEST_F(ActiveSeriesTest, AnUnreadableFileIsReadLaterAndNotReplaced) {
  StartAgent();
  Write({{"a", kGauge, 1}, {"b", kGauge, 1}}, 1000);
  Lines();
  // Opening a socket fails, as it does for a lack of descriptors.
  fs::rename(temporary_ / "series", temporary_ / "kept");
  ASSERT_EQ(mknod((temporary_ / "series").c_str(), S_IFSOCK | 0600, 0), 0);
  StartAgent();
  for (int64_t at : {2000, 3000}) Write({{"b", kGauge, 1}, {"c", kGauge, 1}}, at);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("the agent tries again at each collection")));
  EXPECT_TRUE(fs::is_socket(temporary_ / "series"));
  EXPECT_THAT(Lines(), SizeIs(4));
  fs::rename(temporary_ / "kept", temporary_ / "series");
  Write({{"b", kGauge, 1}, {"c", kGauge, 1}}, 4000);
  EXPECT_THAT(Lines(), ElementsAre("b{job=dlrm} 1 @4000", "c{job=dlrm} 1 @4000", "a{job=dlrm} stale @4000"));
  StartAgent();
  Write({{"d", kGauge, 1}}, 5000);
  EXPECT_THAT(Lines(), ElementsAre("d{job=dlrm} 1 @5000", "b{job=dlrm} stale @5000", "c{job=dlrm} stale @5000"));
  EXPECT_THAT(log_.Warnings(), SizeIs(1));
}

TEST_F(ActiveSeriesTest, AnUnreadableFileIsReadAtTheEndIfNotBefore) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 1000);
  Lines();
  fs::rename(temporary_ / "series", temporary_ / "kept");
  ASSERT_EQ(mknod((temporary_ / "series").c_str(), S_IFSOCK | 0600, 0), 0);
  StartAgent();
  fs::rename(temporary_ / "kept", temporary_ / "series");
  writer_->EndSeries();
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} stale @1001"));
}

}  // namespace
}  // namespace persia::agent
