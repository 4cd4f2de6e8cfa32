#include "push/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kBegin = "pushed metrics are invalid or inconsistent with existing metrics: ";

std::vector<Refusal::Offence> Read(const std::string& answer, size_t piece = 1000) {
  Refusal refusal;
  for (size_t i = 0; i < answer.size(); i += piece) EXPECT_TRUE(refusal.Add(std::string_view(answer).substr(i, piece)));
  return refusal.Finish();
}
std::vector<std::string> FamiliesOf(const std::string& line) {
  const auto offences = Read(kBegin + line);
  return offences.size() == 1 ? offences[0].families : std::vector<std::string>{"offences:", std::to_string(offences.size())};
}

// Each as a prometheus-pushgateway 1.5.1 said it.
TEST(RefusalTest, KnowsWhatTheGatewaySays) {
  EXPECT_THAT(FamiliesOf(R"(collected metric "x" { label:<name:"a" value:"1" > gauge:<value:1 > } is not a COUNTER)"),
              ElementsAre("x"));
  EXPECT_THAT(
      FamiliesOf(R"(collected metric "x" { gauge:<value:1 > } was collected before with the same name and label values)"),
      ElementsAre("x"));
  EXPECT_THAT(
      FamiliesOf(R"(collected histogram or summary named "h" collides with previously collected metric named "h_count")"),
      ElementsAre("h", "h_count"));
  EXPECT_THAT(FamiliesOf(R"(collected metric named "h_sum" collides with previously collected histogram named "h")"),
              ElementsAre("h_sum", "h"));
  EXPECT_THAT(FamiliesOf("gathered metric family process_open_fds has type COUNTER but should have GAUGE"),
              ElementsAre("process_open_fds"));
  EXPECT_THAT(FamiliesOf(R"(gathered metric family a has help "" but should have "Total {requests} collected metric "b".")"),
              ElementsAre("a"));
}

TEST(RefusalTest, SaysNothingOfOtherAnswers) {
  EXPECT_THAT(Read("text format parsing error in line 1: expected float as value, got \"-x\"\n"), IsEmpty());
  EXPECT_THAT(Read(kBegin + "pushed metrics must not have timestamps\n"), IsEmpty());
  EXPECT_THAT(Read(""), IsEmpty());
  EXPECT_THAT(Read(kBegin + "collected metric \"cut_of"), IsEmpty());
  EXPECT_THAT(Read("<html>\n<body>400 Bad Request</body>"), IsEmpty());
}

TEST(RefusalTest, FindsEachFamilyOnceWhereverAPieceEnds) {
  const std::string answer =
      kBegin +
      "3 error(s) occurred:\n* collected metric \"x\" { label:<name:\"a\" value:\"1\" > } is not a COUNTER\n"
      "* collected metric \"x\" { label:<name:\"a\" value:\"2\" > } is not a COUNTER\n"
      "* gathered metric family y has type COUNTER but should have GAUGE\n";
  for (size_t piece = 1; piece < 80; ++piece) {
    const auto offences = Read(answer, piece);
    ASSERT_THAT(offences, SizeIs(2)) << piece;
    EXPECT_EQ(offences[0].reason, R"(collected metric "x" { label:<name:"a" value:"1" > } is not a COUNTER)");
    EXPECT_EQ(offences[1].reason, "gathered metric family y has type COUNTER but should have GAUGE");
  }
}

TEST(RefusalTest, ALabelCannotPassForARefusedFamily) {
  EXPECT_THAT(
      FamiliesOf(R"(collected metric "x" { label:<name:"a" value:"\n* collected metric \"y\" named \"z\"" > } is not a GAUGE)"),
      ElementsAre("x"));
}

TEST(RefusalTest, ALongLineIsShortenedInItsMiddle) {
  const auto offences = Read(kBegin + "collected metric \"x\" { label:<name:\"a\" value:\"" + std::string(1 << 20, 'v') +
                             "\" > } is not a GAUGE\n");
  ASSERT_THAT(offences, SizeIs(1));
  EXPECT_THAT(offences[0].families, ElementsAre("x"));
  EXPECT_THAT(offences[0].reason.size(), Le(600U));
  EXPECT_THAT(offences[0].reason, HasSubstr("} is not a GAUGE"));
}

TEST(RefusalTest, ASecretIsFoundWhereverALineIsCut) {
  const std::string secret = "s3cr3t-t0k3n-0123456789";
  const auto redact = [&](std::string& text) {
    for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) text.replace(at, secret.size(), "***");
  };
  for (const size_t length : {size_t{700}, size_t{100'000}}) {
    for (size_t at = 0; at < 400; ++at) {
      for (const bool from_end : {false, true}) {
        std::string line =
            "collected metric \"x\" { label:<name:\"a\" value:\"" + std::string(length, 'v') + "\" > } is not a GAUGE";
        line.insert(from_end ? line.size() - at : 60 + at, secret);
        // Once as a line that ends, once as one that is cut off, perhaps in the secret.
        for (const std::string& answer : {line + '\n', line.substr(0, line.size() - at % 50)}) {
          Refusal refusal(redact);
          for (size_t i = 0; i < answer.size(); i += 1000) refusal.Add(std::string_view(answer).substr(i, 1000));
          const auto offences = refusal.Finish();
          ASSERT_THAT(offences, SizeIs(1));
          ASSERT_THAT(offences[0].families, ElementsAre("x"));
          ASSERT_THAT(offences[0].reason, Not(HasSubstr("s3cr"))) << at;
          ASSERT_THAT(offences[0].reason, Not(HasSubstr("6789"))) << at;
        }
      }
    }
  }
}

TEST(RefusalTest, AnAnswerThatNamesEndlesslyManyIsEnoughAtSomeTime) {
  Refusal refusal;
  int lines = 0;
  while (refusal.Add("gathered metric family f" + std::to_string(lines) + " has type COUNTER but should have GAUGE\n")) {
    ASSERT_LT(++lines, 20'000);
  }
  EXPECT_THAT(refusal.Finish(), SizeIs(10'000));
}

TEST(RefusalTest, AnEndlessAnswerIsEnoughAtSomeTime) {
  Refusal refusal;
  const std::string piece(1 << 20, 'x');
  int pieces = 0;
  while (refusal.Add(piece)) ASSERT_LT(++pieces, 1000);
  EXPECT_THAT(refusal.Finish(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
