#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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
  const std::pair<Key, size_t> presses[] = {{Key::kUp, 0},     {Key::kPageDown, 3}, {Key::kPageDown, 4}, {Key::kDown, 4},
                                            {Key::kPageUp, 1}, {Key::kPageUp, 0},   {Key::kDown, 1},     {Key::kEnd, 4},
                                            {Key::kUp, 3},     {Key::kHome, 0}};
  for (const auto& [key, selected] : presses) {
    ApplyKey(view, key, 0, kRows, 3);
    EXPECT_EQ(view.selected, selected);
  }
  for (const Key key : {Key::kDown, Key::kEnd}) {
    ApplyKey(view, key, 0, {}, 3);
    EXPECT_EQ(view.selected, 0U);
  }
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
