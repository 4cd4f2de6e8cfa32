#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/spelling.h"

namespace persia::agent {
namespace {

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

TEST(OneLine, HasNoLineEnds) { EXPECT_EQ(OneLine("a\r\nb\x1b[31m"), "a  b\xef\xbf\xbd[31m"); }

// A terminal obeys C1 controls, and marks of direction reorder a line.
TEST(OneLine, HasNoCharacterThatChangesTheLine) {
  EXPECT_EQ(OneLine("a\u009b31m\u2028b\u2029\u202ec\u2066\u200f\ufeff"), "a\ufffd31m\ufffdb\ufffd\ufffdc\ufffd\ufffd\ufffd");
  EXPECT_EQ(Quoted("\u009b\u202e"), R"("\xc29b\xe280ae")");
  EXPECT_EQ(OneLine("Größe 大きさ"), "Größe 大きさ");
}

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

TEST(ClosestMatch, FindsTheIntendedWord) {
  constexpr std::string_view kWords[] = {"job_name", "run_id", "labels"};
  EXPECT_EQ(ClosestMatch("jobname", kWords), "job_name");
  EXPECT_EQ(ClosestMatch("job_naem", kWords), "job_name");  // neighbours swapped
  EXPECT_EQ(ClosestMatch("JOB-NAME", kWords), "job_name");
  EXPECT_EQ(ClosestMatch("label", kWords), "labels");
  EXPECT_EQ(ClosestMatch("interval", kWords), "");
  EXPECT_EQ(ClosestMatch("", kWords), "");
  EXPECT_EQ(ClosestMatch(std::string(100'000, 'x'), kWords), "");
}

}  // namespace
}  // namespace persia::agent
