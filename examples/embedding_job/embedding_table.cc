// A saved table, numbers little-endian:
//
//   file   magic:"EMBTABL1" dimension:uint32 reserved:uint32 row*
//   row    id:uint64 squares:float embedding:float[dimension]
//
// `squares` is Adagrad's state: the sum over all updates of the mean square of the gradient. The number of rows follows from
// the file's size.
#include "embedding_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "adagrad.h"
#include "hashing.h"
#include "job_error.h"
#include "random.h"
#include "vector_ops.h"

namespace embedding_job {
namespace {

constexpr char kMagic[8] = {'E', 'M', 'B', 'T', 'A', 'B', 'L', '1'};

// Bits that neither ServerOf nor TableShard uses, for tables up to 16 million rows a shard.
size_t ShardOf(uint64_t id, size_t shards) { return (MixBits(id) >> 24) % shards; }

void WriteAll(int fd, const void* from, size_t count, const std::filesystem::path& path) {
  const auto* at = static_cast<const char*>(from);
  while (count > 0) {
    const ssize_t written = write(fd, at, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw JobError("cannot write the checkpoint \"" + path.string() + "\": " + std::strerror(errno));
    at += written;
    count -= static_cast<size_t>(written);
  }
}

}  // namespace

// Adagrad's state follows each row, padded to four floats, so that rows stay aligned.
EmbeddingTable::EmbeddingTable(const Options& options) : options_(options) {
  const uint64_t each = std::clamp<uint64_t>((options.capacity + kShards - 1) / kShards, 1, (uint64_t{1} << 31) - 1);
  for (size_t i = 0; i < kShards; ++i)
    shards_.push_back(std::make_unique<Shard>(options.dimension + 4, static_cast<uint32_t>(each)));
}

template <class Visit>
void EmbeddingTable::ForEach(std::span<const uint64_t> ids, Visit&& visit) {
  // The positions of each shard's ids, so that each shard's lock is taken once.
  std::array<std::vector<uint32_t>, kShards> positions;
  for (std::vector<uint32_t>& of_shard : positions) of_shard.reserve(ids.size() / kShards * 2);
  for (uint32_t i = 0; i < ids.size(); ++i) positions[ShardOf(ids[i], kShards)].push_back(i);
  for (size_t s = 0; s < kShards; ++s) {
    const std::lock_guard lock(shards_[s]->mutex);
    for (const uint32_t position : positions[s]) visit(shards_[s]->rows, position);
  }
}

EmbeddingTable::LookedUp EmbeddingTable::Lookup(std::span<const uint64_t> ids, float* rows) {
  LookedUp result;
  ForEach(ids, [&](TableShard& shard, size_t position) {
    uint32_t slot = shard.Find(ids[position]);
    if (slot == TableShard::kNoSlot) {
      ++result.misses;
      const uint64_t evictions_before = shard.evictions();
      slot = shard.Insert(ids[position]);
      result.evictions += shard.evictions() - evictions_before;
      FillRow(ids[position], shard.row(slot));
    } else {
      shard.Touch(slot);
    }
    std::memcpy(rows + position * options_.dimension, shard.row(slot), options_.dimension * sizeof(float));
  });
  return result;
}

uint64_t EmbeddingTable::Update(std::span<const uint64_t> ids, const float* gradients) {
  uint64_t gone = 0;
  const uint32_t dimension = options_.dimension;
  ForEach(ids, [&](TableShard& shard, size_t position) {
    const uint32_t slot = shard.Find(ids[position]);
    if (slot == TableShard::kNoSlot) {
      ++gone;
      return;
    }
    const float* gradient = gradients + position * dimension;
    float* row = shard.row(slot);
    float& squares = row[dimension];
    squares += Dot(gradient, gradient, dimension) / static_cast<float>(dimension);
    AddScaled(row, -options_.learning_rate / (std::sqrt(squares) + kAdagradEpsilon), gradient, dimension);
  });
  return gone;
}

uint64_t EmbeddingTable::rows() const {
  uint64_t rows = 0;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    rows += shard->rows.size();
  }
  return rows;
}

EmbeddingTable::Saved EmbeddingTable::Save(const std::filesystem::path& path) const {
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  const int fd = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw JobError("cannot create the checkpoint \"" + unfinished.string() + "\": " + std::strerror(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* open_fd) { close(*open_fd); });
  const uint32_t head[2] = {options_.dimension, 0};
  WriteAll(fd, kMagic, sizeof(kMagic), path);
  WriteAll(fd, head, sizeof(head), path);
  Saved saved{.rows = 0, .bytes = sizeof(kMagic) + sizeof(head)};
  std::vector<char> buffer;
  for (const auto& shard : shards_) {
    buffer.clear();
    const auto add = [&](const void* from, size_t count) {
      const auto* bytes = static_cast<const char*>(from);
      buffer.insert(buffer.end(), bytes, bytes + count);
    };
    {
      const std::lock_guard lock(shard->mutex);
      for (uint32_t slot = 0; slot < shard->rows.size(); ++slot) {
        const uint64_t id = shard->rows.id(slot);
        const float* row = shard->rows.row(slot);
        add(&id, sizeof(id));
        add(row + options_.dimension, sizeof(float));
        add(row, options_.dimension * sizeof(float));
      }
      saved.rows += shard->rows.size();
    }
    WriteAll(fd, buffer.data(), buffer.size(), path);
    saved.bytes += buffer.size();
  }
  if (fsync(fd) != 0 || rename(unfinished.c_str(), path.c_str()) != 0)
    throw JobError("cannot finish the checkpoint \"" + path.string() + "\": " + std::strerror(errno));
  return saved;
}

void EmbeddingTable::FillRow(uint64_t id, float* row) const {
  Random random(MixBits(id) ^ options_.seed);
  const float span = 1.0F / static_cast<float>(options_.dimension);
  for (uint32_t i = 0; i < options_.dimension; ++i) row[i] = (static_cast<float>(random.Share()) - 0.5F) * span;
  std::fill_n(row + options_.dimension, 4, 0.0F);
}

}  // namespace embedding_job
