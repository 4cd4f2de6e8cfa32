#include "format/spare_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

constexpr size_t kLarge = 100'000;

TEST(SpareTextTest, MemoryIsUsedAgainOnceNobodyHasTheText) {
  SpareText spare;
  std::shared_ptr<std::string> first = spare.Take();
  first->assign(kLarge, 'a');
  const char* const memory = first->data();
  const std::shared_ptr<const std::string> reader = first;
  first = nullptr;
  std::shared_ptr<std::string> second = spare.Take();
  second->assign(kLarge, 'b');
  EXPECT_NE(second->data(), memory);
  EXPECT_EQ(*reader, std::string(kLarge, 'a'));
  second = nullptr;
  EXPECT_GE(spare.Take()->capacity(), kLarge);
}

TEST(SpareTextTest, OneTextIsKeptAndNoMore) {
  SpareText spare;
  std::shared_ptr<std::string> one = spare.Take();
  std::shared_ptr<std::string> other = spare.Take();
  one->assign(kLarge, 'a');
  other->assign(kLarge, 'b');
  one = nullptr;
  other = nullptr;
  const std::shared_ptr<std::string> again = spare.Take();
  EXPECT_EQ(again->front(), 'a');
  EXPECT_LT(spare.Take()->capacity(), kLarge);
}

TEST(SpareTextTest, WhatATextThatHasShrunkHeldIsGivenBack) {
  SpareText spare;
  std::shared_ptr<std::string> text = spare.Take();
  text->assign(kLarge, 'a');
  text->resize(kLarge / 5);
  text = nullptr;
  EXPECT_LT(spare.Take()->capacity(), kLarge);
}

TEST(SpareTextTest, ATextOutlivesWhereItCameFrom) {
  auto spare = std::make_unique<SpareText>();
  const std::shared_ptr<std::string> text = spare->Take();
  text->assign(kLarge, 'a');
  spare = nullptr;
  EXPECT_EQ(text->size(), kLarge);
}

TEST(SpareTextTest, ReadersOnOtherThreadsSeeTheirTextToItsEnd) {
  SpareText spare;
  std::vector<std::thread> readers;
  for (int i = 0; i < 50; ++i) {
    const char content = static_cast<char>('a' + i % 26);
    const std::shared_ptr<std::string> text = spare.Take();
    text->assign(kLarge, content);
    readers.emplace_back([reader = std::shared_ptr<const std::string>(text), content]() mutable {
      EXPECT_EQ(reader->find_first_not_of(content), std::string::npos);
      reader = nullptr;
    });
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
}

}  // namespace
}  // namespace persia::agent
