#include "base/text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace persia::agent {
namespace {

using namespace std::string_literals;

TEST(HexEncode, WritesTwoLowerCaseDigitsForEachByte) {
  EXPECT_EQ(HexEncode(""), "");
  EXPECT_EQ(HexEncode("\0\x0f\xa5\xff"s), "000fa5ff");
}

// RFC 4648, section 10.
TEST(Base64, EncodesAndDecodesTheVectorsOfItsSpecification) {
  const struct {
    std::string bytes;
    std::string standard;
    std::string url;
  } cases[] = {{"", "", ""},
               {"f", "Zg==", "Zg"},
               {"fo", "Zm8=", "Zm8"},
               {"foo", "Zm9v", "Zm9v"},
               {"foob", "Zm9vYg==", "Zm9vYg"},
               {"fooba", "Zm9vYmE=", "Zm9vYmE"},
               {"\xff\xfe\xfb"s, "//77", "__77"}};
  for (const auto& one : cases) {
    EXPECT_EQ(Base64Encode(one.bytes), one.standard);
    EXPECT_EQ(Base64UrlEncode(one.bytes), one.url);
    EXPECT_EQ(Base64Decode(one.standard), one.bytes);
  }
  EXPECT_EQ(Base64Decode("Zm8"), "fo");
}

TEST(Base64, DecodesNothingElse) {
  for (const char* text : {"Z", "Zm9vY", "Zm9_", "Zm 9v", "Zg===", "Z=g="}) EXPECT_EQ(Base64Decode(text), std::nullopt) << text;
}

TEST(PercentEncode, LeavesUnreservedCharacters) {
  EXPECT_EQ(PercentEncode("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(PercentEncode("a b/%\xc3\xbc\0"s), "a%20b%2F%25%C3%BC%00");
}

}  // namespace
}  // namespace persia::agent
