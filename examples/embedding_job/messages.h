// The messages between the roles.
//
// Each struct has Encode, which returns a frame, and Decode, which reads one and throws WireError if it is inconsistent: after
// Decode, every index is within bounds. Thread safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire.h"

namespace embedding_job {

// The sparse features of a sample: a word as the sum of its parts (itself and its character n-grams), and a word as a
// neighbour.
inline constexpr std::array<std::string_view, 2> kFeatureNames = {"center", "context"};
inline constexpr size_t kFeatures = kFeatureNames.size();
inline constexpr size_t kCenter = 0;
inline constexpr size_t kContext = 1;

// Connections that the embedding worker and the embedding server wait for: a job has one data loader, one trainer (which asks
// for batches on one connection and returns gradients on the other), and one embedding worker (likewise).
inline constexpr int kConnectionsToWorker = 3;
inline constexpr int kConnectionsToServer = 2;

// The ids of one feature, a bag a row: row r has ids[offsets[r]] up to ids[offsets[r + 1]].
struct Bags {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint64_t> ids;

  [[nodiscard]] size_t rows() const { return offsets.size() - 1; }
};

// The pairs: centre row r with the context rows contexts[offsets[r]] up to contexts[offsets[r + 1]]. Context rows from
// `first_negative` on were drawn at random; those before it are neighbours in the text.
struct Pairs {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint32_t> contexts;
  uint32_t first_negative = 0;
};

// The position of a batch in the job.
struct Progress {
  uint64_t batch = 0;  // numbered from 0
  uint32_t epoch = 0;  // from 0
  uint8_t ends_epoch = 0;
  float remaining_seconds = 0;
};

// The first frame on a connection; answered by kAck, or kError if the two were started with different options.
struct Hello {
  std::string role;
  uint32_t dimension = 0;  // 0: any
};

struct Batch {
  Progress progress;
  std::array<Bags, kFeatures> features;
  Pairs pairs;
};

// A batch with embeddings in place of ids: `dimension` numbers for each row of a feature, the sum of its bag.
struct EmbeddingBatch {
  Progress progress;
  uint32_t dimension = 0;
  std::array<std::vector<float>, kFeatures> rows;
  Pairs pairs;
};

// The gradients of those rows.
struct GradientBatch {
  uint64_t batch = 0;
  uint32_t dimension = 0;
  std::array<std::vector<float>, kFeatures> rows;
};

// Ids of all features, each once.
struct Lookup {
  uint32_t dimension = 0;
  std::vector<uint64_t> ids;
};

// Answer to a Lookup, in its order.
struct Rows {
  std::vector<float> values;
};

struct Update {
  uint32_t dimension = 0;
  std::vector<uint64_t> ids;
  std::vector<float> gradients;
};

struct Checkpoint {
  std::string name;  // of the folder in the checkpoint directory
};

struct CheckpointDone {
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

Frame Encode(const Hello& message);
Frame Encode(const Batch& message);
Frame Encode(const EmbeddingBatch& message);
Frame Encode(const GradientBatch& message);
Frame Encode(const Lookup& message);
Frame Encode(const Rows& message);
Frame Encode(const Update& message);
Frame Encode(const Checkpoint& message);
Frame Encode(const CheckpointDone& message);
Frame EncodeError(std::string_view text);

// Message: any of the structs above. Throws WireError too if the frame is of another type; JobError if it is a kError.
template <class Message>
Message Decode(const Frame& frame);

// Throws unless the frame is of this type; the text of a kError becomes a JobError.
void Expect(const Frame& frame, MessageType type);

}  // namespace embedding_job
