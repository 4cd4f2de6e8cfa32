#include "remote/write_request.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "model/snapshot.h"
#include "remote/decoded.h"

namespace persia::agent {
namespace {

std::string Encoded(const Labels& labels) {
  std::string encoded;
  for (const auto& [name, value] : labels) AppendLabel(encoded, name, value);
  return encoded;
}

// Lengths from 128 on take two bytes.
TEST(WriteRequestTest, TheBytesAreProtobufsOwn) {
  std::minstd_rand random(7);
  WriteRequest request;
  persia_test::WriteRequest expected;
  const int64_t times[] = {1, 127, 128, 1'700'000'000'000, std::numeric_limits<int64_t>::max(), -1};
  for (int i = 0; i < 500; ++i) {
    Labels labels;
    auto* series = expected.add_timeseries();
    for (size_t count = 1 + random() % 5; count > 0; --count) {
      labels.emplace_back("label_" + std::to_string(9 - count), std::string(1 + random() % (i % 50 == 0 ? 70'000 : 300), 'v'));
      series->add_labels()->set_name(labels.back().first);
      series->mutable_labels()->rbegin()->set_value(labels.back().second);
    }
    auto* sample = series->add_samples();
    sample->set_value(static_cast<double>(1 + random() % 1000) / 3);
    sample->set_timestamp(times[random() % std::size(times)]);
    request.Add(Encoded(labels), std::bit_cast<uint64_t>(sample->value()), sample->timestamp());
  }
  EXPECT_EQ(request.bytes(), expected.SerializeAsString());
}

TEST(WriteRequestTest, AStaleMarkerKeepsItsBits) {
  WriteRequest request;
  request.Add(Encoded({{"__name__", "up"}}), kStaleMarker, 5);
  request.Add(Encoded({{"__name__", "up"}}), kNormalNan, 6);
  persia_test::WriteRequest read;
  ASSERT_TRUE(read.ParseFromString(std::string(request.bytes())));
  EXPECT_EQ(std::bit_cast<uint64_t>(read.timeseries(0).samples(0).value()), 0x7ff0000000000002);
  EXPECT_EQ(std::bit_cast<uint64_t>(read.timeseries(1).samples(0).value()), 0x7ff8000000000001);
}

TEST(SnappyBlockTest, UncompressReversesCompress) {
  std::string block;
  for (const std::string& data : {std::string(), std::string("x"), std::string(1 << 20, 'x')}) {
    SnappyCompress(data, block);
    EXPECT_LE(block.size(), 1 + data.size() / 10 + 32);
    EXPECT_EQ(SnappyUncompress(block, 1 << 20), data);
  }
}

TEST(SnappyBlockTest, ItIsTheBlockFormatAndNotTheFramedOne) {
  std::string block;
  SnappyCompress("x", block);
  EXPECT_EQ(block, std::string("\x01\x00x", 3)) << "the length, then a literal";
}

TEST(SnappyBlockTest, AnEnormousLengthTakesNoMemory) {
  const std::string block("\xff\xff\xff\xff\x01\x00x", 7);  // claims 512 MiB
  const auto most_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = most_kib();
  EXPECT_FALSE(SnappyUncompress(block, 1ULL << 30));
  EXPECT_LT(most_kib() - before, 100 << 10);
}

TEST(SnappyBlockTest, InvalidAndTooLargeBlocksAreRejected) {
  std::string block;
  SnappyCompress(std::string(1000, 'x'), block);
  EXPECT_FALSE(SnappyUncompress(block, 999));
  EXPECT_FALSE(SnappyUncompress(block.substr(0, block.size() - 1), 1000));
  EXPECT_FALSE(SnappyUncompress("", 1000));
}

}  // namespace
}  // namespace persia::agent
