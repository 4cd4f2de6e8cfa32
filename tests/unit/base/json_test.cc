#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace persia::agent {
namespace {

using namespace std::string_literals;

TEST(JsonString, IsJsonWhateverComesIn) {
  EXPECT_EQ(JsonString("a\"b\\c\nd\x01"), R"("a\"b\\c\nd\u0001")");
  EXPECT_EQ(JsonString("\0"s), R"("\u0000")");
  EXPECT_EQ(JsonString("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(WriteJson, KeepsTheOrderAndWritesOneLine) {
  EXPECT_EQ(WriteJson({{"z", 1}, {"a", {true, nullptr}}, {"\xff", std::numeric_limits<double>::infinity()}}),
            "{\"z\":1,\"a\":[true,null],\"\xef\xbf\xbd\":null}");
}

}  // namespace
}  // namespace persia::agent
