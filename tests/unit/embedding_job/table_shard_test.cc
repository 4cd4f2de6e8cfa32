#include "table_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "random.h"

namespace embedding_job {
namespace {

constexpr uint32_t kRowFloats = 4;

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
