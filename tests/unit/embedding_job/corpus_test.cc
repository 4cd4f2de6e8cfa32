#include "corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job_error.h"

namespace embedding_job {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(ForEachWord, SplitsWhereLettersEnd) {
  EXPECT_THAT(Words("The GNU licence, version 3."), ElementsAre("the", "gnu", "licence", "version"));
  EXPECT_THAT(Words("a-b\tc\n\nd"), ElementsAre("a", "b", "c", "d"));
}

TEST(ForEachWord, KeepsUtf8Whole) { EXPECT_THAT(Words("Ünder «größe»"), ElementsAre("Ünder", "«größe»")); }

TEST(ForEachWord, FindsNothingInNothing) {
  EXPECT_THAT(Words(""), IsEmpty());
  EXPECT_THAT(Words("123 --- 4.5"), IsEmpty());
}

TEST(ForEachWord, LeavesOutWhatIsTooLongForAWord) {
  EXPECT_THAT(Words(std::string(41, 'x') + " ok " + std::string(40, 'y')), ElementsAre("ok", std::string(40, 'y')));
}

TEST(Vocabulary, RanksByFrequencyAndThenByName) {
  const Vocabulary vocabulary({{"b", 3}, {"a", 3}, {"c", 9}, {"once", 1}});
  ASSERT_EQ(vocabulary.size(), 3U);
  EXPECT_EQ(vocabulary.word(0), "c");
  EXPECT_EQ(vocabulary.word(1), "a");
  EXPECT_EQ(vocabulary.word(2), "b");
  EXPECT_EQ(vocabulary.count(0), 9U);
  EXPECT_EQ(vocabulary.Find("b"), 2U);
  EXPECT_EQ(vocabulary.Find("once"), vocabulary.size());
}

TEST(Vocabulary, MakesAWordOfItselfAndItsNgrams) {
  const Vocabulary vocabulary({{"cat", 2}, {"cats", 2}, {"a", 2}});
  const auto parts = [&](std::string_view word) { return vocabulary.parts(vocabulary.Find(word)); };
  // <ca cat at>, <cat cat>; the word itself comes first.
  EXPECT_EQ(parts("cat").size(), 6U);
  EXPECT_EQ(parts("cat").front(), vocabulary.id(vocabulary.Find("cat")));
  // "<a>" would be the word again.
  EXPECT_EQ(parts("a").size(), 1U);
  // "<cat" and "<ca", "cat" are in both.
  int shared = 0;
  for (const uint64_t part : parts("cats")) {
    shared += std::count(parts("cat").begin(), parts("cat").end(), part) > 0 ? 1 : 0;
  }
  EXPECT_EQ(shared, 3);
}

TEST(Vocabulary, SurvivesAMove) {
  Vocabulary first({{"word", 2}});
  const Vocabulary second(std::move(first));
  EXPECT_EQ(second.Find("word"), 0U);
}

class CorpusFiles : public testing::Test {
 protected:
  CorpusFiles() : folder_(testing::TempDir() + "corpus_test." + std::to_string(getpid())) { fs::create_directories(folder_); }
  ~CorpusFiles() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static std::string Repeated(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) {
      all += text;
    }
    return all;
  }
  Corpus Read(uint64_t max_words = 0) { return ReadCorpus(TextFilesOf(folder_), max_words); }
  std::string Refusal() {
    try {
      Read();
    } catch (const JobError& error) {
      return error.what();
    }
    return "accepted";
  }

  const fs::path folder_;
};

TEST_F(CorpusFiles, ReadsAFolderInTheOrderOfItsNames) {
  Write("b/second.txt", Repeated("beta ", 100));
  Write("a.txt", Repeated("alpha ", 100));
  const Corpus corpus = Read();
  EXPECT_EQ(corpus.files, 2U);
  ASSERT_EQ(corpus.words.size(), 200U);
  EXPECT_EQ(corpus.vocabulary.word(corpus.words.front()), "alpha");
  EXPECT_EQ(corpus.vocabulary.word(corpus.words.back()), "beta");
}

TEST_F(CorpusFiles, ReadsATextThatIsThereTwiceOnce) {
  Write("a.txt", Repeated("alpha ", 100));
  Write("b.txt", Repeated("alpha ", 100));
  EXPECT_EQ(Read().words.size(), 100U);
}

TEST_F(CorpusFiles, LeavesOutWhatIsNoText) {
  Write("a.txt", Repeated("alpha ", 100));
  Write("b.bin", std::string("beta\0beta", 9) + Repeated(" beta", 100));
  EXPECT_EQ(Read().files, 1U);
}

TEST_F(CorpusFiles, StopsReadingAtTheLimit) {
  Write("a.txt", Repeated("alpha ", 100));
  Write("b.txt", Repeated("beta ", 100));
  EXPECT_EQ(Read(50).files, 1U);
}

TEST_F(CorpusFiles, LeavesOutWordsThatOccurOnce) {
  Write("a.txt", Repeated("alpha ", 100) + "hapax");
  EXPECT_EQ(Read().words.size(), 100U);
}

TEST_F(CorpusFiles, RefusesTooLittleText) {
  Write("a.txt", "one two three");
  EXPECT_THAT(Refusal(), HasSubstr("too little to learn from"));
  EXPECT_THAT(Refusal(), HasSubstr("a.txt"));
}

TEST_F(CorpusFiles, RefusesAnEmptyFolder) { EXPECT_THAT(Refusal(), HasSubstr("no file in this folder")); }

TEST_F(CorpusFiles, RefusesAPathThatIsNotThere) {
  EXPECT_THROW(TextFilesOf(folder_ / "missing"), JobError);
  EXPECT_THAT(TextFilesOf((Write("a.txt", "x"), folder_ / "a.txt")), ElementsAre(folder_ / "a.txt"));
}

}  // namespace
}  // namespace embedding_job
