#include "embedding_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "job_error.h"

namespace embedding_job {
namespace {

constexpr uint32_t kDimension = 8;

class EmbeddingTableTest : public testing::Test {
 protected:
  static std::vector<uint64_t> Ids(uint64_t first, size_t count) {
    std::vector<uint64_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  static uint64_t Misses(EmbeddingTable& table, const std::vector<uint64_t>& ids) {
    std::vector<float> rows(ids.size() * kDimension);
    return table.Lookup(ids, rows.data()).misses;
  }
  static std::vector<float> Row(EmbeddingTable& table, uint64_t id) {
    std::vector<float> row(kDimension);
    table.Lookup(std::vector<uint64_t>{id}, row.data());
    return row;
  }
};

TEST_F(EmbeddingTableTest, AnIdIsMissedOnce) {
  EmbeddingTable table({.dimension = kDimension, .capacity = 100'000});
  EXPECT_EQ(Misses(table, Ids(0, 1000)), 1000U);
  EXPECT_EQ(Misses(table, Ids(0, 1000)), 0U);
  EXPECT_EQ(Misses(table, Ids(500, 1000)), 500U);
  EXPECT_EQ(table.rows(), 1500U);
}

TEST_F(EmbeddingTableTest, HoldsNoMoreThanItsCapacity) {
  EmbeddingTable table({.dimension = kDimension, .capacity = 160});
  std::vector<float> rows(10'000 * kDimension);
  const EmbeddingTable::LookedUp result = table.Lookup(Ids(0, 10'000), rows.data());
  EXPECT_EQ(result.misses, 10'000U);
  EXPECT_EQ(table.rows(), 160U);
  EXPECT_EQ(result.evictions, 10'000U - 160U);
  // A dropped row is missed again.
  EXPECT_EQ(Misses(table, Ids(0, 100)), 100U);
}

TEST_F(EmbeddingTableTest, AGradientOfADroppedIdIsCountedAndBringsNothingBack) {
  EmbeddingTable table({.dimension = kDimension, .capacity = 16});
  Misses(table, Ids(0, 1));
  const std::vector<float> gradient(kDimension, 1);
  EXPECT_EQ(table.Update(Ids(0, 1), gradient.data()), 0U);
  Misses(table, Ids(1, 1000));
  EXPECT_EQ(table.Update(Ids(0, 1), gradient.data()), 1U);
  EXPECT_EQ(Misses(table, Ids(0, 1)), 1U);
}

TEST_F(EmbeddingTableTest, NewRowsDependOnIdAndSeedAlone) {
  EmbeddingTable table({.dimension = kDimension, .seed = 1});
  EmbeddingTable same({.dimension = kDimension, .seed = 1});
  EmbeddingTable other({.dimension = kDimension, .seed = 2});
  Misses(same, Ids(0, 100));
  EXPECT_EQ(Row(table, 7), Row(same, 7));
  EXPECT_NE(Row(table, 7), Row(other, 7));
  EXPECT_NE(Row(table, 7), Row(table, 8));
  for (const float value : Row(table, 7)) {
    EXPECT_LE(std::abs(value), 0.5F / kDimension);
  }
}

TEST_F(EmbeddingTableTest, UpdatesByAdagrad) {
  EmbeddingTable table({.dimension = kDimension, .learning_rate = 0.1F});
  const std::vector<float> before = Row(table, 7);
  // The mean square is 4, then 8: steps of 0.1 * 2 / 2 and 0.1 * 2 / sqrt(8).
  const std::vector<float> gradient(kDimension, 2);
  table.Update(Ids(7, 1), gradient.data());
  table.Update(Ids(7, 1), gradient.data());
  const std::vector<float> after = Row(table, 7);
  for (size_t i = 0; i < kDimension; ++i) {
    EXPECT_NEAR(before[i] - after[i], 0.1F + 0.2F / std::sqrt(8.0F), 1e-5);
  }
}

TEST_F(EmbeddingTableTest, SavesEveryRow) {
  const std::filesystem::path path = testing::TempDir() + "embedding_table_test." + std::to_string(getpid());
  EmbeddingTable table({.dimension = kDimension, .capacity = 10'000});
  Misses(table, Ids(1000, 300));
  const EmbeddingTable::Saved saved = table.Save(path);
  EXPECT_EQ(saved.rows, 300U);

  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t kHead = 16;
  constexpr size_t kRow = 8 + 4 + 4 * kDimension;
  ASSERT_EQ(bytes.size(), kHead + 300 * kRow);
  EXPECT_EQ(saved.bytes, bytes.size());
  EXPECT_EQ(bytes.substr(0, 8), "EMBTABL1");
  std::set<uint64_t> ids;
  for (size_t at = kHead; at < bytes.size(); at += kRow) {
    uint64_t id = 0;
    std::memcpy(&id, &bytes[at], sizeof(id));
    std::vector<float> row(kDimension);
    std::memcpy(row.data(), &bytes[at + 12], 4 * kDimension);
    EXPECT_EQ(row, Row(table, id)) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 300U);
  EXPECT_EQ(*ids.begin(), 1000U);
  std::filesystem::remove(path);
}

TEST_F(EmbeddingTableTest, SaysWhereItCannotSave) {
  const EmbeddingTable table({.dimension = kDimension});
  try {
    static_cast<void>(table.Save("/nonexistent/folder/x.table"));
    FAIL();
  } catch (const JobError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/folder/x.table"), std::string::npos) << error.what();
  }
}

// For the thread sanitizer; the counts of all threads also add up.
TEST_F(EmbeddingTableTest, LookUpsAndUpdatesGoOnSideBySide) {
  EmbeddingTable table({.dimension = kDimension, .capacity = 512});
  std::atomic<uint64_t> misses = 0;
  std::atomic<uint64_t> evictions = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 200; ++i) {
        std::vector<float> rows(100 * kDimension);
        const auto result = table.Lookup(Ids((t * 7 + i * 13) % 2000, 100), rows.data());
        misses += result.misses;
        evictions += result.evictions;
      }
    });
    threads.emplace_back([&] {
      const std::vector<float> gradients(100 * kDimension, 0.1F);
      for (uint64_t i = 0; i < 200; ++i) {
        table.Update(Ids(i * 11 % 2000, 100), gradients.data());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(misses - evictions, table.rows());
}

}  // namespace
}  // namespace embedding_job
