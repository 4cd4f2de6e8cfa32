#include "format/group_renderer.h"

#include <gtest/gtest.h>

#include <string>

namespace persia::agent {
namespace {

std::string PathOfJob(const std::string& job) { return GroupingKeyPath({job, {}}); }

TEST(GroupingKeyTest, HoldsTheJobAndThenTheLabels) {
  EXPECT_EQ(GroupingKeyPath({"embedding", {{"instance", "rep_0"}, {"ip_addr", "10.0.0.7"}, {"role", "trainer"}}}),
            "/metrics/job/embedding/instance/rep_0/ip_addr/10.0.0.7/role/trainer");
  EXPECT_EQ(PathOfJob("embedding"), "/metrics/job/embedding");
}

TEST(GroupingKeyTest, PercentEncodesWhatAUrlCannotCarry) {
  EXPECT_EQ(PathOfJob("a b"), "/metrics/job/a%20b");
  EXPECT_EQ(PathOfJob("a+b%20"), "/metrics/job/a%2Bb%2520");
  EXPECT_EQ(PathOfJob("q?#;&"), "/metrics/job/q%3F%23%3B%26");
  EXPECT_EQ(PathOfJob("größe"), "/metrics/job/gr%C3%B6%C3%9Fe");
  EXPECT_EQ(PathOfJob("two\nlines"), "/metrics/job/two%0Alines");
  EXPECT_EQ(PathOfJob("A-z_0.9~"), "/metrics/job/A-z_0.9~");
}

TEST(GroupingKeyTest, WritesWhatASegmentCannotCarryInBase64) {
  EXPECT_EQ(PathOfJob("team/job"), "/metrics/job@base64/dGVhbS9qb2I");
  EXPECT_EQ(PathOfJob("/"), "/metrics/job@base64/Lw");
  EXPECT_EQ(PathOfJob("."), "/metrics/job@base64/Lg");
  EXPECT_EQ(PathOfJob(".."), "/metrics/job@base64/Li4");
  EXPECT_EQ(GroupingKeyPath({"j", {{"role", ""}, {"zone", "a/b"}}}), "/metrics/job/j/role@base64/=/zone@base64/YS9i");
}

TEST(GroupingKeyTest, UsesTheUrlSafeAlphabet) { EXPECT_EQ(PathOfJob("\xff\xfe\xfb/"), "/metrics/job@base64/__77Lw"); }

}  // namespace
}  // namespace persia::agent
