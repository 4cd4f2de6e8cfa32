#include "remote/series_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace persia::agent {
namespace {

TEST(SeriesTableTest, EachSeriesIsKeptOnceAndFound) {
  SeriesTable table;
  EXPECT_FALSE(table.Find("none"));
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(table.Add("series " + std::to_string(i)));
  for (uint32_t i = 0; i < 10'000; ++i) {
    const std::string labels = "series " + std::to_string(i);
    EXPECT_FALSE(table.Add(labels));
    EXPECT_EQ(table.Find(labels), i);
    EXPECT_EQ(table.labels(i), labels);
  }
  EXPECT_EQ(table.size(), 10'000U);
  EXPECT_FALSE(table.Find("series 10000"));
  EXPECT_FALSE(table.Find(""));
}

TEST(SeriesTableTest, HashesAreSpreadOverShards) {
  SeriesTable table;
  for (int i = 0; i < 8'000; ++i) table.Add("name" + std::to_string(i % 40) + "instance" + std::to_string(i / 40));
  int of_shard[8] = {};
  int ones = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    ++of_shard[table.hash(i) % 8];
    ones += std::popcount(table.hash(i));
  }
  for (const int count : of_shard) EXPECT_NEAR(count, 1000, 150);
  EXPECT_NEAR(ones / 8000.0, 32, 0.5);
}

}  // namespace
}  // namespace persia::agent
