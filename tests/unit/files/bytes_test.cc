#include "files/bytes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

enum class Grade : uint8_t { kGood, kBad };

struct Page {
  std::string title;
  Grade grade = Grade::kGood;
  bool is_read = false;
  std::optional<double> step = {};
  uint16_t marks[2] = {};
};

template <class Archive>
void Fields(Archive& archive, Page& page) {
  archive(page.title, page.grade, page.is_read, page.step, page.marks);
  archive.Check(page.grade <= Grade::kBad);
}

struct Book {
  std::vector<Page> pages;
  std::map<std::pair<std::string, int32_t>, std::chrono::nanoseconds> times;
  std::set<uint32_t> numbers;
  std::chrono::system_clock::time_point printed{};
};

template <class Archive>
void Fields(Archive& archive, Book& book) {
  archive(book.pages, book.times, book.numbers, book.printed);
}

Book Sample() {
  Book book;
  book.pages = {{.title = "a", .grade = Grade::kBad, .is_read = true, .step = 1.5, .marks = {1, 2}}, {}};
  book.times = {{{"x", -1}, std::chrono::nanoseconds(-5)}};
  book.numbers = {3, 4};
  book.printed = std::chrono::system_clock::time_point(std::chrono::milliseconds(7));
  return book;
}

TEST(FieldsTest, AStructIsReadAsItWasWritten) {
  const std::string bytes = Encode(Sample());
  const auto book = DecodeAs<Book>(bytes);
  ASSERT_TRUE(book);
  EXPECT_EQ(Encode(*book), bytes);
  EXPECT_EQ(book->pages[0].marks[1], 2);
  EXPECT_EQ(book->times.begin()->second.count(), -5);
  EXPECT_EQ(book->printed, Sample().printed);
  const std::string expected("\1\0\0\0a\1\1\1\0\0\0\0\0\0\xf8\x3f\1\0\2\0", 20);
  EXPECT_EQ(Encode(Sample().pages[0]), expected);
}

TEST(FieldsTest, BytesThatAreCutOrTooManyAreRefused) {
  const std::string bytes = Encode(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(DecodeAs<Book>(bytes.substr(0, size))) << size;
  EXPECT_FALSE(DecodeAs<Book>(bytes + "x"));
}

TEST(FieldsTest, AValueThatCannotBeIsRefused) {
  std::string bytes = Encode(Sample().pages[0]);
  bytes[5] = 2;
  EXPECT_FALSE(DecodeAs<Page>(bytes));
}

TEST(FieldsTest, ATimeIsNeitherBefore1970NorBeyondTheCalendar) {
  using Time = std::chrono::system_clock::time_point;
  EXPECT_EQ(DecodeAs<Time>(Encode(Time(std::chrono::hours(-1)))), Time());
  EXPECT_LT(DecodeAs<Time>(std::string(8, '\xff'))->time_since_epoch(), std::chrono::hours(24 * 365 * 280));
}

}  // namespace
}  // namespace persia::agent
