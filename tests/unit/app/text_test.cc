#include "app/text.h"

#include <gtest/gtest.h>

#include "app/nearest.h"

namespace persia::agent {
namespace {

using namespace std::string_literals;

TEST(Quoted, StandsInOneLine) {
  EXPECT_EQ(Quoted("plain"), R"("plain")");
  EXPECT_EQ(Quoted("a\nb\tc\"d\\e"), R"("a\nb\tc\"d\\e")");
  EXPECT_EQ(Quoted("\x01\x7f\xff"), R"("\x01\x7f\xff")");
  EXPECT_EQ(Quoted("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
}

TEST(Quoted, IsShortenedBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) {
    umlauts += "\xc3\xbc";
  }
  EXPECT_EQ(Quoted(umlauts), "\"" + umlauts.substr(0, 80) + "...\"");
}

TEST(JsonString, IsJsonWhateverComesIn) {
  EXPECT_EQ(JsonString("a\"b\\c\nd\x01"), R"("a\"b\\c\nd\u0001")");
  EXPECT_EQ(JsonString("\0"s), R"("\u0000")");
  EXPECT_EQ(JsonString("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(OneLine, HasNoLineEnds) { EXPECT_EQ(OneLine("a\r\nb\x1b[31m"), "a  b\xef\xbf\xbd[31m"); }

TEST(CheckText, RefusesWhatCannotStandInALabel) {
  const auto error = [](std::string_view text) {
    const Status status = CheckText(text, "a name");
    return status.ok() ? "" : status.error();
  };
  EXPECT_EQ(error("a \xe2\x82\xac"), "");
  EXPECT_EQ(error(""), "a name must not be empty");
  EXPECT_EQ(error("a\nb"), R"("a\nb" has a control character in it)");
  EXPECT_EQ(error("\xc0\xaf"), R"("\xc0\xaf" is not valid UTF-8)");                  // overlong
  EXPECT_EQ(error("\xed\xa0\x80"), R"("\xed\xa0\x80" is not valid UTF-8)");          // a surrogate
  EXPECT_EQ(error("\xf4\x90\x80\x80"), R"("\xf4\x90\x80\x80" is not valid UTF-8)");  // beyond the last
  EXPECT_NE(error(std::string(4097, 'a')), "");
}

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::string_view kWords[] = {"job_name", "run_id", "labels"};
  EXPECT_EQ(Nearest("jobname", kWords), "job_name");
  EXPECT_EQ(Nearest("job_naem", kWords), "job_name");  // neighbours swapped
  EXPECT_EQ(Nearest("JOB-NAME", kWords), "job_name");
  EXPECT_EQ(Nearest("label", kWords), "labels");
  EXPECT_EQ(Nearest("interval", kWords), "");
  EXPECT_EQ(Nearest("", kWords), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), kWords), "");
}

}  // namespace
}  // namespace persia::agent
