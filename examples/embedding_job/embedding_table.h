// The rows that one embedding server holds: embeddings by id, trained by Adagrad, of bounded number.
//
// Ids that are looked up for the first time get a row of small random numbers, which depend on the id and the seed alone. The
// table is split into shards with a lock each, so that look-ups and updates go on side by side. Thread safety: any method, from
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "table_shard.h"

namespace embedding_job {

class EmbeddingTable {
 public:
  struct Options {
    uint32_t dimension = 32;    // a multiple of 4
    uint64_t capacity = 20000;  // rows, spread evenly over the shards; at least one a shard
    float learning_rate = 0.05F;
    uint64_t seed = 1;
  };

  explicit EmbeddingTable(const Options& options);

  struct LookedUp {
    uint64_t misses = 0;     // ids that were not here; they are now
    uint64_t evictions = 0;  // ids that made room for them: those not looked up for the longest time
  };
  // Copies the row of each id to `rows`, one behind the other. REQUIRES: room for ids.size() * dimension.
  LookedUp Lookup(std::span<const uint64_t> ids, float* rows);

  // Moves the row of each id against its gradient. Returns how many ids were not here any more; they stay away.
  // REQUIRES: ids.size() * dimension gradients.
  uint64_t Update(std::span<const uint64_t> ids, const float* gradients);

  // How many rows are here.
  [[nodiscard]] uint64_t rows() const;

  struct Saved {
    uint64_t rows = 0;
    uint64_t bytes = 0;
  };
  // Writes all rows to a file, and only then gives it its name. Shards are copied one after another while others go on. Throws
  // JobError. The grammar is in the .cc.
  Saved Save(const std::filesystem::path& path) const;

 private:
  static constexpr size_t kShards = 16;
  struct Shard {
    Shard(uint32_t row_floats, uint32_t capacity) : rows(row_floats, capacity) {}
    mutable std::mutex mutex;
    TableShard rows;  // guarded by mutex
  };

  // Calls `visit(Shard&, size_t position)` for each id, shard by shard, under the shard's lock.
  template <class Visit>
  void ForEach(std::span<const uint64_t> ids, Visit&& visit);
  void FillRow(uint64_t id, float* row) const;

  const Options options_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace embedding_job
