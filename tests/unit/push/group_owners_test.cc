#include "push/group_owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "format/group_renderer.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(OwnerScanTest, ReadsTheOwnerOfEachGroupWhereverAPieceEnds) {
  const std::string page =
      "# HELP persia_agent_owner_info 1, with ...\n# TYPE persia_agent_owner_info gauge\n"
      "persia_agent_owner_info{agent_gateway=\"01234567\",agent_id=\"aaaaaaaaaaaaaaaa\",instance=\"rep_0\",job=\"my "
      "\\\"job\\\"\\\\\\n\",role=\"\"} 1\n"
      "persia_agent_owner_info{agent_id=\"bbbbbbbbbbbbbbbb\",instance=\"\",job=\"other\"} 1\n"
      "persia_agent_owner_infos{agent_id=\"cccccccccccccccc\",instance=\"rep_0\",job=\"my\"} 1\n"
      "x{agent_id=\"dddddddddddddddd\"} 1\npersia_agent_owner_info{agent_id=\"cut";
  const std::string job = "my \"job\"\\\n";
  const std::string key = OwnerKey({job, {{"instance", "rep_0"}, {"role", ""}}});
  EXPECT_EQ(key, OwnerKey({job, {{"instance", "rep_0"}}}));
  for (size_t piece = 1; piece < 60; ++piece) {
    OwnerScan scan(job);
    for (size_t i = 0; i < page.size(); i += piece) ASSERT_TRUE(scan.Add(std::string_view(page).substr(i, piece)));
    EXPECT_THAT(scan.owners(), ElementsAre(Pair(key, Owner{"aaaaaaaaaaaaaaaa", "01234567"}))) << piece;
  }
}

TEST(OwnerScanTest, ReadsWhatAGroupCarries) {
  const std::string url = "http://gw:9091";
  OwnerScan scan("job");
  std::string page;
  GroupRenderer().Render(OwnerSnapshot("aaaaaaaaaaaaaaaa", url), 0, page);
  scan.Add(page.insert(page.find("} 1"), ",job=\"job\""));
  EXPECT_THAT(scan.owners(), ElementsAre(Pair(OwnerKey({"job", {}}), Owner{"aaaaaaaaaaaaaaaa", GatewayHash(url)})));
  EXPECT_EQ(GatewayHash(url).size(), 8U);
  EXPECT_NE(GatewayHash(url), GatewayHash("http://gw.local:9091"));
}

TEST(OwnerScanTest, AnIdIsWhatAnAgentMayHave) {
  OwnerScan scan("job");
  for (const std::string& id : {std::string(), std::string("aaaaaaaaaaaaaaa"), std::string("aaaaaaaaaaaaaaag"),
                                std::string("\\n0123456789abcde"), std::string(1000, 'a')}) {
    scan.Add("persia_agent_owner_info{agent_id=\"" + id + "\",job=\"job\"} 1\n");
  }
  EXPECT_THAT(scan.owners(), IsEmpty());
  scan.Add("persia_agent_owner_info{agent_id=\"0123456789abcdef\",agent_gateway=\"0123456g\",job=\"job\"} 1\n");
  EXPECT_THAT(scan.owners(), ElementsAre(Pair(OwnerKey({"job", {}}), Owner{"0123456789abcdef", ""})));
}

TEST(OwnerScanTest, MoreOwnersThanAnyJobHasAreEnough) {
  OwnerScan scan("job");
  int lines = 0;
  while (
      scan.Add("persia_agent_owner_info{agent_id=\"0123456789abcdef\",job=\"job\",n=\"" + std::to_string(lines) + "\"} 1\n")) {
    ASSERT_FALSE(scan.cut_short());
    ASSERT_LT(++lines, 200'000);
  }
  EXPECT_TRUE(scan.cut_short());
}

TEST(OwnerScanTest, AnEndlessPageIsEnoughAtSomeTime) {
  OwnerScan scan("job");
  const std::string piece = "persia_agent_owner_info{" + std::string(1 << 20, 'x');
  int pieces = 0;
  while (scan.Add(piece)) ASSERT_LT(++pieces, 3000);
  EXPECT_TRUE(scan.cut_short());
  EXPECT_THAT(scan.owners(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
