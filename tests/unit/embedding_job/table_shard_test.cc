#include "table_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>

#include "random.h"

namespace embedding_job {
namespace {

constexpr uint32_t kRowFloats = 4;

TEST(TableShard, FindsWhatWasInsertedAndNothingElse) {
  TableShard shard(kRowFloats, 100);
  EXPECT_EQ(shard.Find(7), TableShard::kNoSlot);
  const uint32_t slot = shard.Insert(7);
  EXPECT_EQ(shard.Find(7), slot);
  EXPECT_EQ(shard.id(slot), 7U);
  EXPECT_EQ(shard.Find(8), TableShard::kNoSlot);
}

TEST(TableShard, DropsTheLeastRecentlyUsed) {
  TableShard shard(kRowFloats, 3);
  for (const uint64_t id : {1U, 2U, 3U}) {
    shard.Insert(id);
  }
  shard.Touch(shard.Find(1));
  shard.Insert(4);
  EXPECT_EQ(shard.Find(2), TableShard::kNoSlot);
  EXPECT_NE(shard.Find(1), TableShard::kNoSlot);
  EXPECT_EQ(shard.evictions(), 1U);
  EXPECT_EQ(shard.size(), 3U);
}

TEST(TableShard, WorksWithOneRow) {
  TableShard shard(kRowFloats, 1);
  for (uint64_t id = 0; id < 10; ++id) {
    EXPECT_EQ(shard.Insert(id), 0U);
    shard.Touch(0);
    EXPECT_EQ(shard.Find(id), 0U);
  }
  EXPECT_EQ(shard.evictions(), 9U);
}

TEST(TableShard, RowsKeepTheirNumbersWhileItGrows) {
  TableShard shard(kRowFloats, 10'000);
  for (uint64_t id = 0; id < 10'000; ++id) {
    shard.row(shard.Insert(id))[3] = static_cast<float>(id);
  }
  for (uint64_t id = 0; id < 10'000; ++id) {
    ASSERT_EQ(shard.row(shard.Find(id))[3], static_cast<float>(id));
  }
}

// Against a model that is too simple to be wrong: a list, newest first.
TEST(TableShard, AgreesWithAListUnderRandomUse) {
  constexpr size_t kCapacity = 50;
  TableShard shard(kRowFloats, kCapacity);
  std::list<uint64_t> model;
  Random random(1);
  uint64_t evictions = 0;
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t id = random.Below(100);
    const auto found = std::find(model.begin(), model.end(), id);
    const uint32_t slot = shard.Find(id);
    ASSERT_EQ(slot == TableShard::kNoSlot, found == model.end()) << step;
    if (found != model.end()) {
      ASSERT_EQ(shard.id(slot), id);
      shard.Touch(slot);
      model.erase(found);
    } else {
      shard.Insert(id);
      if (model.size() == kCapacity) {
        model.pop_back();
        ++evictions;
      }
    }
    model.push_front(id);
  }
  EXPECT_EQ(shard.evictions(), evictions);
  EXPECT_GT(evictions, 1000U);
}

}  // namespace
}  // namespace embedding_job
