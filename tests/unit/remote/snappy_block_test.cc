#include "remote/snappy_block.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

namespace persia::agent {
namespace {

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
