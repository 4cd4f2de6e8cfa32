#include "format/text_buffer_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

constexpr size_t kLarge = 100'000;

TEST(TextBufferPoolTest, MemoryIsReusedOnceTheTextIsReleased) {
  TextBufferPool pool;
  std::shared_ptr<std::string> first = pool.Take();
  first->assign(kLarge, 'a');
  const char* const memory = first->data();
  const std::shared_ptr<const std::string> reader = first;
  first = nullptr;
  std::shared_ptr<std::string> second = pool.Take();
  second->assign(kLarge, 'b');
  EXPECT_NE(second->data(), memory);
  EXPECT_EQ(*reader, std::string(kLarge, 'a'));
  second = nullptr;
  EXPECT_GE(pool.Take()->capacity(), kLarge);
}

TEST(TextBufferPoolTest, KeepsOneTextAtMost) {
  TextBufferPool pool;
  std::shared_ptr<std::string> one = pool.Take();
  std::shared_ptr<std::string> other = pool.Take();
  one->assign(kLarge, 'a');
  other->assign(kLarge, 'b');
  one = nullptr;
  other = nullptr;
  const std::shared_ptr<std::string> again = pool.Take();
  EXPECT_EQ(again->front(), 'a');
  EXPECT_LT(pool.Take()->capacity(), kLarge);
}

TEST(TextBufferPoolTest, FreesATextThatHasShrunk) {
  TextBufferPool pool;
  std::shared_ptr<std::string> text = pool.Take();
  text->assign(kLarge, 'a');
  text->resize(kLarge / 5);
  text = nullptr;
  EXPECT_LT(pool.Take()->capacity(), kLarge);
}

TEST(TextBufferPoolTest, ATextOutlivesItsPool) {
  auto pool = std::make_unique<TextBufferPool>();
  const std::shared_ptr<std::string> text = pool->Take();
  text->assign(kLarge, 'a');
  pool = nullptr;
  EXPECT_EQ(text->size(), kLarge);
}

TEST(TextBufferPoolTest, ReadersOnOtherThreadsKeepTheirText) {
  TextBufferPool pool;
  std::vector<std::thread> readers;
  for (int i = 0; i < 50; ++i) {
    const char content = static_cast<char>('a' + i % 26);
    const std::shared_ptr<std::string> text = pool.Take();
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
