#include "files/bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

TEST(BytesTest, WhatWasWrittenIsRead) {
  ByteWriter writer;
  writer.U8(7);
  writer.U32(1U << 31);
  writer.U64(~0ULL);
  writer.F64(0.1);
  writer.String("trainer");
  writer.String("");
  const std::string bytes = std::move(writer).Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.U8(), 7);
  EXPECT_EQ(reader.U32(), 1U << 31);
  EXPECT_EQ(reader.U64(), ~0ULL);
  EXPECT_EQ(reader.F64(), 0.1);
  EXPECT_EQ(reader.String(), "trainer");
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.String(), "");
  EXPECT_TRUE(reader.done());
}

TEST(BytesTest, WhatIsNotThereIsZeroAndAFailure) {
  ByteReader reader("abc");
  EXPECT_EQ(reader.U8(), 'a');
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0) << "nothing is read after a failure";
  EXPECT_FALSE(reader.done());
}

TEST(BytesTest, ATextBeyondTheEndIsAFailure) {
  ByteWriter writer;
  writer.U32(4);
  std::string bytes = std::move(writer).Take() + "abc";
  ByteReader reader(bytes);
  EXPECT_EQ(reader.String(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(BytesTest, ACountThatCannotBeTrueIsAFailure) {
  ByteWriter writer;
  writer.U32(3);
  std::string bytes = std::move(writer).Take() + std::string(24, 'x');
  EXPECT_EQ(ByteReader(bytes).Count(8), 3U);
  ByteReader reader(std::string_view(bytes).substr(0, bytes.size() - 1));
  EXPECT_EQ(reader.Count(8), 0U);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace persia::agent
