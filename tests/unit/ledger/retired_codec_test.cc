// Encoding and decoding the state of ended processes.
#include "ledger/retired_codec.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "segment_format.h"

namespace persia::agent::testing {
namespace {

using std::chrono::seconds;

namespace segment = persia::metrics::segment;

TEST(RetiredCodecTest, DamagedPayloadsAreRefusedOrRead) {
  SegmentIdentity identity{.run_id = "r", .role = "worker", .labels = {{"a", "b"}}};
  RetiredState state{.run_id = "r",
                     .folded = {"id"},
                     .ordinals = {{"of the living", 2}},
                     .living = {{"other", "alone"}},
                     .processes = RetiredProcesses({})};
  RetiredGroup& group = state.processes.FindOrAddGroup(identity);
  SegmentFamily family{.known = true,
                       .kind = segment::Kind::kHistogram,
                       .policy = {},
                       .bounds = {1, 2},
                       .group = "g",
                       .name = "h",
                       .help = "",
                       .unit = ""};
  const uint32_t number = group.FindOrAddFamily(family, {1, "id", 0});
  const size_t series = group.FindOrAddSeries(number, 0, std::string("\1\0\0\0x\1\0\0\0y", 10), 1, 1000, true);
  group.SetSum(series, 0, std::vector<double>{1, 1e-30, 1e-60});
  group.Cells(series)[1] = 3;
  family.kind = segment::Kind::kStream;
  family.bounds.clear();
  const size_t stream = group.FindOrAddSeries(group.FindOrAddFamily(family, {1, "id", 1}), 0, "", 0, 2000, true);
  group.SetSum(stream, 0, std::vector<double>{2, 1e-30});
  group.SetSum(stream, 1, std::vector<double>{-3});
  group.Cells(stream)[segment::kStreamZeros] = 4;
  const auto value = [](double value) {
    return EndedValue{.value = value,
                      .expires = std::chrono::steady_clock::time_point(seconds(300)),
                      .ended = std::chrono::system_clock::time_point(seconds(1))};
  };
  group.AddGaugeValue(stream, value(5));
  family.kind = segment::Kind::kGauge;
  family.policy = GaugePolicy::kSum;
  const size_t gauge = group.FindOrAddSeries(group.FindOrAddFamily(family, {1, "id", 2}), 0, "", 0, 2000, true);
  group.AddGaugeValue(gauge, value(6));
  group.AddGaugeValue(gauge, value(7));
  const CollectTime now{1, {}, std::chrono::system_clock::time_point(seconds(1))};
  const std::string payload = EncodeRetired(state, now);

  const auto whole = DecodeRetired(payload, {}, now);
  ASSERT_TRUE(whole.ok()) << whole.error();
  EXPECT_EQ(EncodeRetired(whole.value(), now), payload);
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(DecodeRetired(payload.substr(0, size), {}, now).ok()) << size;
  }
  EXPECT_FALSE(DecodeRetired(payload + "x", {}, now).ok());
  size_t read = 0;
  for (size_t at = 0; at < payload.size(); ++at) {
    for (const char bit : {1, 16, -128}) {
      std::string damaged = payload;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      read += DecodeRetired(damaged, {}, now).ok() ? 1 : 0;  // a value or a text may be anything
    }
  }
  EXPECT_GT(read, 0U);
  EXPECT_LT(read, 3 * payload.size());
}

// Encoded by the first release: two processes ended together, of which one counted 5.5 and set its gauges to 10, 11 and 12, and
// the other counted 7 and set them to 20, 21 and 22.
TEST(RetiredCodecTest, VersionOneIsRead) {
  const std::string path = std::string(PERSIA_TESTDATA) + "/retired-1.payload";
  std::ifstream file(path, std::ios::binary);
  const std::string payload{std::istreambuf_iterator<char>(file), {}};
  const auto after = [](int s) {
    return CollectTime{1, std::chrono::steady_clock::time_point(seconds(s)),
                       std::chrono::system_clock::time_point(seconds(1'800'000'000 + s))};
  };
  auto state = DecodeRetired(payload, {.hide_ended = false}, after(150), 1);
  ASSERT_TRUE(state.ok()) << state.error();
  EXPECT_EQ(state.value().run_id, "run-1");
  EXPECT_EQ(state.value().processes.processes(), 2U);
  ASSERT_EQ(state.value().processes.groups().size(), 1U);
  const RetiredGroup& group = state.value().processes.groups().front();
  ASSERT_EQ(group.series_count(), 4U);
  const auto value_of = [&](size_t series) {
    const auto values = group.ValuesOf(series);
    return values.size() == 1 ? std::pair(values[0].value, values[0].processes) : std::pair(-1.0, 0U);
  };
  EXPECT_EQ(group.Input().values->wholes[group.series(0).whole], 12U);
  EXPECT_EQ(value_of(1), std::pair(15.0, 2U)) << "an average";
  EXPECT_EQ(value_of(2).first, 21) << "the last";
  EXPECT_EQ(value_of(3).first, 22) << "a stream's last value";
  EXPECT_EQ(group.Input().values->wholes[group.series(3).whole + segment::kStreamZeros], 8U);

  const auto again = DecodeRetired(EncodeRetired(state.value(), after(150)), {}, after(150));
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(EncodeRetired(again.value(), after(150)), EncodeRetired(state.value(), after(150)));
  EXPECT_FALSE(state.value().processes.Inputs(after(399)).empty());
  EXPECT_EQ(group.ValuesOf(1).size(), 1U);
  EXPECT_FALSE(state.value().processes.Inputs(after(400)).empty());
  EXPECT_TRUE(group.ValuesOf(1).empty()) << "300 s after the processes ended, their gauges expire";

  EXPECT_FALSE(DecodeRetired(payload, {}, after(150), 2).ok());
  EXPECT_FALSE(DecodeRetired(payload, {}, after(150), 0).ok());
  EXPECT_FALSE(DecodeRetired(payload, {}, after(150), kRetiredStateVersion + 1).ok());
}

// A process that was alive when an agent of the first release saved its state.
TEST(RetiredCodecTest, LivingProcessesOfVersionOneAreWrittenAnew) {
  std::ifstream file(std::string(PERSIA_TESTDATA) + "/retired-1.payload", std::ios::binary);
  const std::string alone{std::istreambuf_iterator<char>(file), {}};
  ByteWriter writer;
  writer.String("run-1");
  writer.U32(0);  // folded
  writer.U32(0);  // ordinals
  writer.U32(2);  // living
  writer.String("a");
  writer.String(alone);
  writer.String("b");
  writer.String("malformed");
  writer.U64(0);  // processes
  writer.U32(0);  // instances
  writer.U32(0);  // groups
  const CollectTime now{1, {}, std::chrono::system_clock::time_point(seconds(1'800'000'150))};
  const auto state = DecodeRetired(std::move(writer).Take(), {}, now, 1);
  ASSERT_TRUE(state.ok()) << state.error();
  const auto living = DecodeRetired(state.value().living.at("a"), {}, now);
  ASSERT_TRUE(living.ok()) << living.error();
  EXPECT_EQ(living.value().processes.groups().front().ValuesOf(1).front().value, 15);
  EXPECT_EQ(state.value().living.at("b"), "malformed") << "FoldLost reports it";
}

}  // namespace
}  // namespace persia::agent::testing
