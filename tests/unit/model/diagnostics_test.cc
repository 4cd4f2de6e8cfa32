#include "model/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DiagnosticsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Taken() {
    std::vector<std::string> texts;
    for (const Diagnostic& diagnostic : diagnostics_.Take()) texts.push_back(diagnostic.kind + ": " + diagnostic.text);
    return texts;
  }
  void Flood(const std::string& kind, int texts) {
    for (int i = 0; i < texts; ++i) diagnostics_.Report(kind, "flood " + std::to_string(i));
  }

  Diagnostics::TimePoint now_{};
  Diagnostics diagnostics_{{.now = [this] { return now_; }}};
};

TEST_F(DiagnosticsTest, ATextIsReportedOnceUntilItIsForgotten) {
  diagnostics_.Report("refused", "a");
  diagnostics_.Report("refused", "a");
  EXPECT_THAT(Taken(), ElementsAre("refused: a"));
  diagnostics_.Forget("a");
  diagnostics_.Report("refused", "a");
  EXPECT_THAT(Taken(), ElementsAre("refused: a"));
}

TEST_F(DiagnosticsTest, AFloodOfOneKindSilencesNoOther) {
  Flood("collision", 20'000);
  EXPECT_EQ(Taken().size(), 101U) << "one line says that there are more";
  diagnostics_.Report("refused", "a");
  EXPECT_THAT(Taken(), ElementsAre("refused: a"));
}

TEST_F(DiagnosticsTest, AFloodedKindIsReportedAgainWithTime) {
  Flood("collision", 20'000);
  static_cast<void>(Taken());
  diagnostics_.Report("collision", "a");
  EXPECT_THAT(Taken(), IsEmpty());
  now_ += seconds(6);
  diagnostics_.Report("collision", "a");
  diagnostics_.Report("collision", "b");
  EXPECT_THAT(Taken(), ElementsAre("collision: a"));
  now_ += seconds(6);
  diagnostics_.Report("collision", "a");
  diagnostics_.Report("collision", "b");
  EXPECT_THAT(Taken(), ElementsAre("collision: b"));
}

TEST_F(DiagnosticsTest, ALongTextIsCutBetweenCharacters) {
  diagnostics_.Report("refused", std::string(2047, 'a') + "\xc3\xbc and more");
  EXPECT_THAT(Taken(), ElementsAre("refused: " + std::string(2047, 'a') + "..."));
}

}  // namespace
}  // namespace persia::agent
