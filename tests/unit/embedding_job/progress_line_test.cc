#include "progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "loss_record.h"

namespace embedding_job {
namespace {

TEST(ShortNumber, IsReadAtAGlance) {
  const struct {
    double value;
    const char* text;
  } cases[] = {{0, "0"},      {7, "7"},          {999, "999"},      {1000, "1.0k"},      {9940, "9.9k"},
               {9960, "10k"}, {999'499, "999k"}, {999'500, "1.0M"}, {12'345'678, "12M"}, {5e9, "5.0G"}};
  for (const auto& c : cases) {
    EXPECT_EQ(ShortNumber(c.value), c.text);
  }
}

TEST(ProgressLine, ShowsRatesSinceTheLastLine) {
  const ProgressLine::State before{.batches = 100, .pairs = 1'000'000, .elapsed_seconds = 1};
  const ProgressLine::State now{
      .batches = 300, .pairs = 3'000'000, .epoch = 2, .loss = 0.51234, .elapsed_seconds = 3, .remaining_seconds = 6.2};
  EXPECT_EQ(ProgressLine::Render(now, before),
            "   3.0 s  epoch 3     100 batches/s    1.0M pairs/s  loss 0.5123  7 s remaining");
}

class ProgressOutput : public testing::Test {
 protected:
  ProgressOutput() : file_(std::tmpfile()) {}
  ~ProgressOutput() override { std::fclose(file_); }
  std::string Written() {
    std::rewind(file_);
    char text[1000];
    return {text, std::fread(text, 1, sizeof(text), file_)};
  }
  std::FILE* const file_;
};

TEST_F(ProgressOutput, IsALineASecondWithoutCarriageReturns) {
  ProgressLine line(file_);
  for (int i = 0; i < 25; ++i) {
    line.Show({.batches = static_cast<uint64_t>(i), .elapsed_seconds = 0.1 * i});
  }
  line.End();
  const std::string text = Written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(LossRecord, MeansTheFirstAndTheLastBatches) {
  LossRecord record;
  EXPECT_EQ(record.First(), 0);
  EXPECT_EQ(record.Last(), 0);
  record.Add(3);
  record.Add(1);
  EXPECT_EQ(record.First(), 2);
  EXPECT_EQ(record.Last(), 2);
  for (int i = 0; i < 18; ++i) {
    record.Add(2);
  }
  for (int i = 0; i < 25; ++i) {
    record.Add(1);
  }
  EXPECT_EQ(record.First(), 2);
  EXPECT_EQ(record.Last(), 1);
  EXPECT_EQ(record.batches(), 45U);
}

}  // namespace
}  // namespace embedding_job
