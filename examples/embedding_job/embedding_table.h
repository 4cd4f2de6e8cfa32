// The rows of one embedding server: a bounded number of embeddings by id, trained by Adagrad.
//
// An id that is looked up for the first time gets a row of small random numbers, which depend only on the id and the seed. The
// table has shards with a lock each, so that look-ups and updates run concurrently. Thread safety: any method, from any thread.
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
    uint64_t misses = 0;     // new ids
    uint64_t evictions = 0;  // ids that were evicted for them, the least recently looked up
  };
  // Copies the row of each id to `rows`, in order. REQUIRES: space for ids.size() * dimension floats.
  LookedUp Lookup(std::span<const uint64_t> ids, float* rows);

  // Moves the row of each id against its gradient. Returns the number of ids that had been evicted; they are not added again.
  // REQUIRES: ids.size() * dimension gradients.
  uint64_t Update(std::span<const uint64_t> ids, const float* gradients);

  // The number of rows.
  [[nodiscard]] uint64_t rows() const;

  struct Saved {
    uint64_t rows = 0;
    uint64_t bytes = 0;
  };
  // Writes all rows to a temporary file, then renames it. Shards are copied one after another, while the others are in use.
  // Throws JobError. The grammar is in the .cc.
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
