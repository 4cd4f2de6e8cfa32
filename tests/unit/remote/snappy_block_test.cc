#include "remote/snappy_block.h"

#include <gtest/gtest.h>

namespace persia::agent {
namespace {

TEST(SnappyBlockTest, WhatWasCompressedComesBack) {
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

TEST(SnappyBlockTest, WhatIsNoBlockOrTooMuchIsNothing) {
  std::string block;
  SnappyCompress(std::string(1000, 'x'), block);
  EXPECT_FALSE(SnappyUncompress(block, 999));
  EXPECT_FALSE(SnappyUncompress(block.substr(0, block.size() - 1), 1000));
  EXPECT_FALSE(SnappyUncompress("", 1000));
}

}  // namespace
}  // namespace persia::agent
