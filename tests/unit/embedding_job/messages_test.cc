#include "messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "random.h"

namespace embedding_job {
namespace {

using testing::HasSubstr;

FrameHeader GoodHeader() {
  return {.magic = kFrameMagic, .type = static_cast<uint16_t>(MessageType::kBatch), .flags = 0, .payload_bytes = 10};
}

std::string WireRefusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const WireError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FrameHeader, RefusesAnotherProtocol) {
  FrameHeader header = GoodHeader();
  header.magic = 0x20544547;  // "GET "
  EXPECT_THAT(WireRefusal([&] { CheckHeader(header); }), HasSubstr("0x20544547"));
}

TEST(FrameHeader, RefusesUnknownTypes) {
  for (const uint16_t type : {uint16_t{0}, uint16_t{kLastMessageType + 1}}) {
    FrameHeader header = GoodHeader();
    header.type = type;
    EXPECT_THAT(WireRefusal([&] { CheckHeader(header); }), HasSubstr("unknown type " + std::to_string(type)));
  }
}

TEST(FrameHeader, RefusesGarbageLengths) {
  FrameHeader header = GoodHeader();
  header.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_THAT(WireRefusal([&] { CheckHeader(header); }), HasSubstr(std::to_string(header.payload_bytes)));
}

Batch SmallBatch() {
  Batch batch;
  batch.progress = {.batch = 7, .epoch = 2, .ends_epoch = 1, .remaining_seconds = 1.5F};
  batch.features[kCenter] = {.offsets = {0, 2, 3}, .ids = {10, 11, 12}};
  batch.features[kContext] = {.offsets = {0, 1, 2, 3}, .ids = {20, 21, 22}};
  batch.pairs = {.offsets = {0, 1, 3}, .contexts = {1, 0, 2}, .first_negative = 2};
  return batch;
}

TEST(Messages, ABatchArrivesAsItWasSent) {
  const Batch sent = SmallBatch();
  const auto got = Decode<Batch>(Encode(sent));
  EXPECT_EQ(got.progress.batch, 7U);
  EXPECT_EQ(got.progress.epoch, 2U);
  EXPECT_EQ(got.progress.ends_epoch, 1U);
  EXPECT_EQ(got.progress.remaining_seconds, 1.5F);
  for (size_t f = 0; f < kFeatures; ++f) {
    EXPECT_EQ(got.features[f].offsets, sent.features[f].offsets);
    EXPECT_EQ(got.features[f].ids, sent.features[f].ids);
  }
  EXPECT_EQ(got.pairs.offsets, sent.pairs.offsets);
  EXPECT_EQ(got.pairs.contexts, sent.pairs.contexts);
  EXPECT_EQ(got.pairs.first_negative, 2U);
}

TEST(Messages, NanAndInfinityArrive) {
  const std::vector<float> values = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -0.0F, 1};
  const auto got = Decode<GradientBatch>(Encode(GradientBatch{.batch = 3, .dimension = 4, .rows = {values, {}}}));
  EXPECT_EQ(got.batch, 3U);
  EXPECT_EQ(got.rows[0][0], values[0]);
  EXPECT_NE(got.rows[0][1], got.rows[0][1]);
  EXPECT_TRUE(got.rows[1].empty());
}

TEST(Messages, OthersArriveToo) {
  EXPECT_EQ(Decode<Hello>(Encode(Hello{"trainer", 32})).role, "trainer");
  EXPECT_EQ(Decode<Lookup>(Encode(Lookup{8, {1, 2}})).ids, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(Decode<Rows>(Encode(Rows{{1, 2}})).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(Decode<Update>(Encode(Update{4, {9}, {1, 2, 3, 4}})).gradients, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Decode<Checkpoint>(Encode(Checkpoint{"epoch_1"})).name, "epoch_1");
  EXPECT_EQ(Decode<CheckpointDone>(Encode(CheckpointDone{5, 6})).bytes, 6U);
  const auto batch = Decode<EmbeddingBatch>(Encode(EmbeddingBatch{
      .progress = {}, .dimension = 4, .rows = {std::vector<float>(8), std::vector<float>(12)}, .pairs = SmallBatch().pairs}));
  EXPECT_EQ(batch.rows[kContext].size(), 12U);
}

TEST(Messages, RefusesAFrameOfAnotherType) {
  EXPECT_THAT(WireRefusal([] { Decode<Rows>(Encode(Hello{"x", 4})); }), HasSubstr("was expected"));
}

TEST(Messages, AnErrorFrameBecomesAnError) {
  try {
    Decode<Rows>(EncodeError("disk full"));
    FAIL();
  } catch (const JobError& error) {
    EXPECT_THAT(error.what(), HasSubstr("disk full"));
  }
}

// Each line breaks one field; a receiver must not use it as an index.
TEST(Messages, RefusesInconsistentBatches) {
  const struct {
    const char* what;
    std::function<void(Batch&)> damage;
    const char* error;
  } cases[] = {
      {"offsets that fall",
       [](Batch& b) {
         b.features[kCenter].offsets = {0, 3, 2, 3};
       },
       "offsets of bags"},
      {"offsets beyond the ids", [](Batch& b) { b.features[kCenter].offsets.back() = 4; }, "offsets of bags"},
      {"offsets that leave ids out", [](Batch& b) { b.features[kContext].offsets.back() = 2; }, "offsets of bags"},
      {"offsets that start late", [](Batch& b) { b.features[kContext].offsets.front() = 1; }, "offsets of bags"},
      {"no offsets", [](Batch& b) { b.features[kContext].offsets.clear(); }, "offsets of bags"},
      {"pairs beyond the contexts", [](Batch& b) { b.pairs.contexts[0] = 3; }, "a row beyond the 3"},
      {"pairs for another number of rows",
       [](Batch& b) {
         b.pairs.offsets = {0, 1, 2, 3};
       },
       "pairs for 3 rows"},
      {"pair offsets beyond the pairs", [](Batch& b) { b.pairs.offsets.back() = 9; }, "offsets of pairs"},
  };
  for (const auto& c : cases) {
    Batch batch = SmallBatch();
    c.damage(batch);
    EXPECT_THAT(WireRefusal([&] { Decode<Batch>(Encode(batch)); }), HasSubstr(c.error)) << c.what;
  }
}

TEST(Messages, RefusesInconsistentRows) {
  EXPECT_THAT(WireRefusal([] { Decode<Lookup>(Encode(Lookup{3, {}})); }), HasSubstr("multiple of 4"));
  EXPECT_THAT(WireRefusal([] { Decode<Lookup>(Encode(Lookup{0, {}})); }), HasSubstr("multiple of 4"));
  EXPECT_THAT(WireRefusal([] {
                Decode<GradientBatch>(Encode(GradientBatch{0, 4, {std::vector<float>(5), {}}}));
              }),
              HasSubstr("do not make rows"));
  EXPECT_THAT(WireRefusal([] {
                Decode<Update>(Encode(Update{4, {1, 2}, {1, 2, 3, 4}}));
              }),
              HasSubstr("not gradients of 2 ids"));
}

TEST(Messages, RefusesCheckpointsThatLeaveTheirFolder) {
  for (const char* name : {"", ".", "..", "../x", "a/b", ".hidden"}) {
    EXPECT_THAT(WireRefusal([&] { Decode<Checkpoint>(Encode(Checkpoint{name})); }), HasSubstr("not the name of a checkpoint"))
        << name;
  }
}

TEST(Messages, RefusesEveryTruncation) {
  const Frame whole = Encode(SmallBatch());
  for (size_t size = 0; size < whole.payload.size(); ++size) {
    Frame cut = whole;
    cut.payload.resize(size);
    EXPECT_NE(WireRefusal([&] { Decode<Batch>(cut); }), "accepted") << size;
  }
  Frame longer = whole;
  longer.payload.push_back(std::byte{0});
  EXPECT_THAT(WireRefusal([&] { Decode<Batch>(longer); }), HasSubstr("after the end"));
}

TEST(Messages, AnArrayThatLiesAboutItsLengthAsksForNoMemory) {
  Frame frame{MessageType::kRows, {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}}};
  EXPECT_THAT(WireRefusal([&] { Decode<Rows>(frame); }), HasSubstr("ends early"));
}

// With any content, a frame is either refused or consistent.
TEST(Messages, SurvivesRandomDamage) {
  Random random(1);
  const Frame whole = Encode(SmallBatch());
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Frame frame = whole;
    for (uint32_t flips = 1 + random.Below(3); flips > 0; --flips) {
      frame.payload[random.Below(static_cast<uint32_t>(frame.payload.size()))] ^= std::byte(1 + random.Below(255));
    }
    try {
      const auto batch = Decode<Batch>(frame);
      ++accepted;
      for (const uint32_t row : batch.pairs.contexts) {
        ASSERT_LT(row, batch.features[kContext].rows());
      }
      ASSERT_EQ(batch.pairs.offsets.size(), batch.features[kCenter].rows() + 1);
      ASSERT_EQ(batch.pairs.offsets.back(), batch.pairs.contexts.size());
    } catch (const WireError&) {
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace embedding_job
