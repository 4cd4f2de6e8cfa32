#include "naming/glob_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "test_seed.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kNone = GlobTree::kNone;

GlobTree TreeOf(const std::vector<std::string>& globs) {
  GlobTree tree;
  for (size_t i = 0; i < globs.size(); ++i) {
    tree.Add(globs[i], i);
  }
  return tree;
}

bool All(size_t) { return true; }

size_t First(const GlobTree& tree, std::string_view name) {
  std::vector<std::string_view> captures;
  return tree.FindFirst(name, All, captures);
}

size_t MostSpecific(const GlobTree& tree, std::string_view name) {
  std::vector<std::string_view> captures;
  return tree.FindMostSpecific(name, All, captures);
}

TEST(GlobTree, AStarIsOneWholeComponent) {
  const GlobTree tree = TreeOf({"a.*.c"});
  EXPECT_EQ(First(tree, "a.b.c"), 0U);
  EXPECT_EQ(First(tree, "a.<locals> x.c"), 0U);
  EXPECT_EQ(First(tree, "a..c"), 0U);
  for (const char* name : {"a.b", "a.b.c.d", "a.b.b.c", "x.b.c", "a.c", "", "A.b.c"}) {
    EXPECT_EQ(First(tree, name), kNone) << name;
  }
}

TEST(GlobTree, CapturesAreInTheOrderOfTheStars) {
  const GlobTree tree = TreeOf({"x.y.z", "*.b.*"});
  std::vector<std::string_view> captures;
  EXPECT_EQ(tree.FindFirst("1.b.2", All, captures), 1U);
  EXPECT_THAT(captures, ElementsAre("1", "2"));
  EXPECT_EQ(tree.FindFirst("x.y.z", All, captures), 0U);
  EXPECT_THAT(captures, IsEmpty());
}

TEST(GlobTree, TheFirstCountsOrTheMostSpecific) {
  const GlobTree tree = TreeOf({"*.*", "a.*", "*.b", "a.b"});
  EXPECT_EQ(First(tree, "a.b"), 0U);
  EXPECT_EQ(MostSpecific(tree, "a.b"), 3U);
  EXPECT_EQ(MostSpecific(tree, "a.x"), 1U);
  EXPECT_EQ(MostSpecific(tree, "x.b"), 2U);
  EXPECT_EQ(MostSpecific(tree, "x.x"), 0U);
}

TEST(GlobTree, OneThatIsNotAcceptedLeavesItToTheNext) {
  const GlobTree tree = TreeOf({"a.b", "a.b", "a.*"});
  std::vector<std::string_view> captures;
  EXPECT_EQ(tree.FindFirst(
                "a.b", [](size_t i) { return i > 0; }, captures),
            1U);
  EXPECT_EQ(tree.FindFirst(
                "a.b", [](size_t i) { return i > 1; }, captures),
            2U);
  EXPECT_EQ(tree.FindMostSpecific(
                "a.b", [](size_t i) { return i > 1; }, captures),
            2U);
  EXPECT_EQ(tree.FindFirst(
                "a.b", [](size_t) { return false; }, captures),
            kNone);
}

TEST(GlobTree, WhatIsNoGlobIsSaid) {
  EXPECT_TRUE(GlobTree::Check("a.*.c").ok());
  EXPECT_TRUE(GlobTree::Check("*").ok());
  EXPECT_THAT(GlobTree::Check("").error(), HasSubstr("is empty"));
  EXPECT_THAT(GlobTree::Check("a..b").error(), HasSubstr("empty component"));
  EXPECT_THAT(GlobTree::Check(".a").error(), HasSubstr("empty component"));
  EXPECT_THAT(GlobTree::Check("a.").error(), HasSubstr("empty component"));
  EXPECT_THAT(GlobTree::Check("a.b*").error(), HasSubstr("match_type: regex"));
  std::string deep = "a";
  for (int i = 0; i < 64; ++i) {
    deep += ".a";
  }
  EXPECT_THAT(GlobTree::Check(deep).error(), HasSubstr("more than 64 components"));
  EXPECT_EQ(GlobTree::Wildcards("*.a.*"), 2);
}

// Against the plain way: try one after another.
TEST(GlobTree, FindsWhatTryingAllWouldFind) {
  std::mt19937_64 random(TestSeed());
  const auto pick = [&](const char* from) { return std::string(1, from[random() % 3]); };
  const auto path = [&](const char* from) {
    std::string out = pick(from);
    for (size_t i = random() % 4; i > 0; --i) {
      out += "." + pick(from);
    }
    return out;
  };
  const auto matches = [](const std::string& glob, const std::string& name) {
    return glob.size() == name.size() &&
           std::equal(glob.begin(), glob.end(), name.begin(), [](char g, char n) { return g == n || (g == '*' && n != '.'); });
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> globs;
    for (size_t i = random() % 20; i > 0; --i) {
      globs.push_back(path("ab*"));
    }
    const GlobTree tree = TreeOf(globs);
    for (int i = 0; i < 50; ++i) {
      const std::string name = path("abc");
      const auto found = std::find_if(globs.begin(), globs.end(), [&](const auto& glob) { return matches(glob, name); });
      EXPECT_EQ(First(tree, name), found == globs.end() ? kNone : static_cast<size_t>(found - globs.begin())) << name;
    }
  }
}

}  // namespace
}  // namespace persia::agent
