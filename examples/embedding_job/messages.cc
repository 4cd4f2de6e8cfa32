// Payloads: the fields in the order of the structs; a Progress, Bags or Pairs is embedded.
#include "messages.h"

#include <algorithm>

namespace embedding_job {
namespace {

void Write(PayloadWriter& writer, const Progress& progress) {
  writer.Number(progress.batch);
  writer.Number(progress.epoch);
  writer.Number(progress.ends_epoch);
  writer.Number(progress.remaining_seconds);
}

void Write(PayloadWriter& writer, const Bags& bags) {
  writer.Array(bags.offsets);
  writer.Array(bags.ids);
}

void Write(PayloadWriter& writer, const Pairs& pairs) {
  writer.Array(pairs.offsets);
  writer.Array(pairs.contexts);
  writer.Number(pairs.first_negative);
}

// Offsets start at 0, never fall, and end at `end`.
void CheckOffsets(const std::vector<uint32_t>& offsets, size_t end, const char* what) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != end || !std::is_sorted(offsets.begin(), offsets.end()))
    throw WireError(std::string("the offsets of ") + what + " do not rise from 0 to " + std::to_string(end));
}

Progress ReadProgress(PayloadReader& reader) {
  Progress progress;
  progress.batch = reader.Number<uint64_t>();
  progress.epoch = reader.Number<uint32_t>();
  progress.ends_epoch = reader.Number<uint8_t>();
  progress.remaining_seconds = reader.Number<float>();
  return progress;
}

Bags ReadBags(PayloadReader& reader) {
  Bags bags;
  bags.offsets = reader.Array<uint32_t>();
  bags.ids = reader.Array<uint64_t>();
  CheckOffsets(bags.offsets, bags.ids.size(), "bags");
  return bags;
}

// REQUIRES of the sender: `centers` and `contexts` rows of the two features.
Pairs ReadPairs(PayloadReader& reader, size_t centers, size_t contexts) {
  Pairs pairs;
  pairs.offsets = reader.Array<uint32_t>();
  pairs.contexts = reader.Array<uint32_t>();
  pairs.first_negative = reader.Number<uint32_t>();
  CheckOffsets(pairs.offsets, pairs.contexts.size(), "pairs");
  if (pairs.offsets.size() != centers + 1) {
    throw WireError("pairs for " + std::to_string(pairs.offsets.size() - 1) + " rows, but there are " +
                    std::to_string(centers));
  }
  if (std::any_of(pairs.contexts.begin(), pairs.contexts.end(), [&](uint32_t row) { return row >= contexts; }))
    throw WireError("a pair with a row beyond the " + std::to_string(contexts) + " of the context");
  return pairs;
}

uint32_t ReadDimension(PayloadReader& reader) {
  const auto dimension = reader.Number<uint32_t>();
  if (dimension == 0 || dimension % 4 != 0)
    throw WireError("dimension " + std::to_string(dimension) + " is not a multiple of 4");
  return dimension;
}

std::vector<float> ReadRows(PayloadReader& reader, uint32_t dimension) {
  std::vector<float> rows = reader.Array<float>();
  if (rows.size() % dimension != 0)
    throw WireError(std::to_string(rows.size()) + " numbers do not make rows of " + std::to_string(dimension));
  return rows;
}

}  // namespace

Frame Encode(const Hello& message) {
  PayloadWriter writer;
  writer.Text(message.role);
  writer.Number(message.dimension);
  return {MessageType::kHello, writer.Take()};
}

template <>
Hello Decode<Hello>(const Frame& frame) {
  Expect(frame, MessageType::kHello);
  PayloadReader reader(frame.payload);
  Hello message;
  message.role = reader.Text();
  message.dimension = reader.Number<uint32_t>();
  reader.End();
  return message;
}

Frame Encode(const Batch& message) {
  PayloadWriter writer;
  Write(writer, message.progress);
  for (const Bags& bags : message.features) Write(writer, bags);
  Write(writer, message.pairs);
  return {MessageType::kBatch, writer.Take()};
}

template <>
Batch Decode<Batch>(const Frame& frame) {
  Expect(frame, MessageType::kBatch);
  PayloadReader reader(frame.payload);
  Batch message;
  message.progress = ReadProgress(reader);
  for (Bags& bags : message.features) bags = ReadBags(reader);
  message.pairs = ReadPairs(reader, message.features[kCenter].rows(), message.features[kContext].rows());
  reader.End();
  return message;
}

Frame Encode(const EmbeddingBatch& message) {
  PayloadWriter writer;
  Write(writer, message.progress);
  writer.Number(message.dimension);
  for (const std::vector<float>& rows : message.rows) writer.Array(rows);
  Write(writer, message.pairs);
  return {MessageType::kEmbeddings, writer.Take()};
}

template <>
EmbeddingBatch Decode<EmbeddingBatch>(const Frame& frame) {
  Expect(frame, MessageType::kEmbeddings);
  PayloadReader reader(frame.payload);
  EmbeddingBatch message;
  message.progress = ReadProgress(reader);
  message.dimension = ReadDimension(reader);
  for (std::vector<float>& rows : message.rows) rows = ReadRows(reader, message.dimension);
  message.pairs =
      ReadPairs(reader, message.rows[kCenter].size() / message.dimension, message.rows[kContext].size() / message.dimension);
  reader.End();
  return message;
}

Frame Encode(const GradientBatch& message) {
  PayloadWriter writer;
  writer.Number(message.batch);
  writer.Number(message.dimension);
  for (const std::vector<float>& rows : message.rows) writer.Array(rows);
  return {MessageType::kGradients, writer.Take()};
}

template <>
GradientBatch Decode<GradientBatch>(const Frame& frame) {
  Expect(frame, MessageType::kGradients);
  PayloadReader reader(frame.payload);
  GradientBatch message;
  message.batch = reader.Number<uint64_t>();
  message.dimension = ReadDimension(reader);
  for (std::vector<float>& rows : message.rows) rows = ReadRows(reader, message.dimension);
  reader.End();
  return message;
}

Frame Encode(const Lookup& message) {
  PayloadWriter writer;
  writer.Number(message.dimension);
  writer.Array(message.ids);
  return {MessageType::kLookup, writer.Take()};
}

template <>
Lookup Decode<Lookup>(const Frame& frame) {
  Expect(frame, MessageType::kLookup);
  PayloadReader reader(frame.payload);
  Lookup message;
  message.dimension = ReadDimension(reader);
  message.ids = reader.Array<uint64_t>();
  reader.End();
  return message;
}

Frame Encode(const Rows& message) {
  PayloadWriter writer;
  writer.Array(message.values);
  return {MessageType::kRows, writer.Take()};
}

template <>
Rows Decode<Rows>(const Frame& frame) {
  Expect(frame, MessageType::kRows);
  PayloadReader reader(frame.payload);
  Rows message;
  message.values = reader.Array<float>();
  reader.End();
  return message;
}

Frame Encode(const Update& message) {
  PayloadWriter writer;
  writer.Number(message.dimension);
  writer.Array(message.ids);
  writer.Array(message.gradients);
  return {MessageType::kUpdate, writer.Take()};
}

template <>
Update Decode<Update>(const Frame& frame) {
  Expect(frame, MessageType::kUpdate);
  PayloadReader reader(frame.payload);
  Update message;
  message.dimension = ReadDimension(reader);
  message.ids = reader.Array<uint64_t>();
  message.gradients = reader.Array<float>();
  reader.End();
  if (message.gradients.size() != message.ids.size() * message.dimension) {
    throw WireError(std::to_string(message.gradients.size()) + " numbers are not gradients of " +
                    std::to_string(message.ids.size()) + " ids");
  }
  return message;
}

Frame Encode(const Checkpoint& message) {
  PayloadWriter writer;
  writer.Text(message.name);
  return {MessageType::kCheckpoint, writer.Take()};
}

template <>
Checkpoint Decode<Checkpoint>(const Frame& frame) {
  Expect(frame, MessageType::kCheckpoint);
  PayloadReader reader(frame.payload);
  Checkpoint message;
  message.name = reader.Text();
  reader.End();
  // The name becomes part of a path.
  if (message.name.empty() || message.name.find('/') != std::string::npos || message.name.front() == '.')
    throw WireError("\"" + message.name + "\" is not the name of a checkpoint");
  return message;
}

Frame Encode(const CheckpointDone& message) {
  PayloadWriter writer;
  writer.Number(message.rows);
  writer.Number(message.bytes);
  return {MessageType::kCheckpointDone, writer.Take()};
}

template <>
CheckpointDone Decode<CheckpointDone>(const Frame& frame) {
  Expect(frame, MessageType::kCheckpointDone);
  PayloadReader reader(frame.payload);
  CheckpointDone message;
  message.rows = reader.Number<uint64_t>();
  message.bytes = reader.Number<uint64_t>();
  reader.End();
  return message;
}

Frame EncodeError(std::string_view text) {
  PayloadWriter writer;
  writer.Text(text);
  return {MessageType::kError, writer.Take()};
}

void Expect(const Frame& frame, MessageType type) {
  if (frame.type == MessageType::kError) {
    PayloadReader reader(frame.payload);
    throw JobError("the peer answered: " + reader.Text());
  }
  if (frame.type != type) {
    throw WireError("a frame of type " + std::to_string(static_cast<int>(frame.type)) + " where " +
                    std::to_string(static_cast<int>(type)) + " was expected");
  }
}

}  // namespace embedding_job
