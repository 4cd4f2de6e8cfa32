// Encoding and decoding the state of ended processes.
#include "ledger/retired_codec.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

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
  const size_t series = group.FindOrAddSeries(number, 0, std::string("\1\0\0\0x\1\0\0\0y", 10), 1, true);
  group.SetSum(series, 0, std::vector<double>{1, 1e-30, 1e-60});
  group.Cells(series)[1] = 3;
  family.kind = segment::Kind::kStream;
  family.bounds.clear();
  const size_t stream = group.FindOrAddSeries(group.FindOrAddFamily(family, {1, "id", 1}), 0, "", 0, true);
  group.SetSum(stream, 0, std::vector<double>{2, 1e-30});
  group.SetSum(stream, 1, std::vector<double>{-3});
  group.Cells(stream)[segment::kStreamZeros] = 4;
  group.Common(stream) = 5;
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

}  // namespace
}  // namespace persia::agent::testing
