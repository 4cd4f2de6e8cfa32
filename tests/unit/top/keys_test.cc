#include <gtest/gtest.h>

#include "top/screen.h"

namespace persia::agent {
namespace {

const std::vector<std::string> kRows{"bert", "bert", "dlrm", "dlrm", "dlrm"};

bool Type(TopView& view, const std::string& text) {
  bool goes_on = true;
  for (const char c : text) goes_on = ApplyKey(view, Key::kText, c, kRows, 3);
  return goes_on;
}

TEST(ApplyKey, SelectsWithinTheRows) {
  TopView view;
  ApplyKey(view, Key::kUp, 0, kRows, 3);
  EXPECT_EQ(view.selected, 0U);
  ApplyKey(view, Key::kPageDown, 0, kRows, 3);
  EXPECT_EQ(view.selected, 3U);
  ApplyKey(view, Key::kPageDown, 0, kRows, 3);
  EXPECT_EQ(view.selected, 4U);
  ApplyKey(view, Key::kDown, 0, kRows, 3);
  EXPECT_EQ(view.selected, 4U);
  ApplyKey(view, Key::kPageUp, 0, kRows, 3);
  EXPECT_EQ(view.selected, 1U);
  ApplyKey(view, Key::kPageUp, 0, kRows, 3);
  EXPECT_EQ(view.selected, 0U);
  ApplyKey(view, Key::kDown, 0, kRows, 3);
  EXPECT_EQ(view.selected, 1U);
  ApplyKey(view, Key::kEnd, 0, kRows, 3);
  EXPECT_EQ(view.selected, 4U);
  ApplyKey(view, Key::kUp, 0, kRows, 3);
  EXPECT_EQ(view.selected, 3U);
  ApplyKey(view, Key::kHome, 0, kRows, 3);
  EXPECT_EQ(view.selected, 0U);
  ApplyKey(view, Key::kEnd, 0, {}, 3);
  EXPECT_EQ(view.selected, 0U);
}

TEST(ApplyKey, EnterShowsOneJobAndAllAgain) {
  TopView view{.selected = 3};
  ApplyKey(view, Key::kEnter, 0, kRows, 3);
  EXPECT_EQ(view.only, "dlrm");
  EXPECT_EQ(view.selected, 0U);
  ApplyKey(view, Key::kEnter, 0, kRows, 3);
  EXPECT_EQ(view.only, "");
  ApplyKey(view, Key::kEnter, 0, {}, 3);
  EXPECT_EQ(view.only, "");
}

TEST(ApplyKey, LettersBelongToTheFilterWhileItIsTyped) {
  TopView view;
  EXPECT_TRUE(Type(view, "/qsr"));
  EXPECT_EQ(view.filter, "qsr");
  ApplyKey(view, Key::kBackspace, 0, kRows, 3);
  ApplyKey(view, Key::kEnter, 0, kRows, 3);
  EXPECT_EQ(view.filter, "qs");
  EXPECT_FALSE(view.types_filter);
  ApplyKey(view, Key::kEscape, 0, kRows, 3);
  EXPECT_EQ(view.filter, "");
}

TEST(ApplyKey, Letters) {
  TopView view;
  EXPECT_TRUE(Type(view, "srp?"));
  EXPECT_EQ(view.sort, SortKey::kName);
  EXPECT_TRUE(view.reverse && view.paused && view.help);
  EXPECT_TRUE(Type(view, "x"));
  EXPECT_FALSE(view.help);
  EXPECT_FALSE(Type(view, "q"));
}

}  // namespace
}  // namespace persia::agent
