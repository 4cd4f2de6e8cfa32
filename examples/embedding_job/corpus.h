// Text as numbers: the words of a corpus, and the parts of each word.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace embedding_job {

// Calls `sink(std::string_view word)` for each word of a text, in order: runs of letters, in lower case where they are ASCII;
// bytes beyond ASCII are letters, so that UTF-8 stays whole. The view is valid during the call. Words longer than 40 bytes are
// skipped.
template <class Sink>
void ForEachWord(std::string_view text, Sink&& sink) {
  constexpr size_t kLongestWord = 40;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && word.size() <= kLongestWord) sink(std::string_view(word));
    word.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 'A' && byte <= 'Z')
      word += static_cast<char>(byte - 'A' + 'a');
    else if ((byte >= 'a' && byte <= 'z') || byte >= 0x80)
      word += c;
    else
      end_word();
  }
  end_word();
}

// The words of a corpus that occur at least twice, the most frequent first.
class Vocabulary {
 public:
  // `counts`: how often each word occurs.
  explicit Vocabulary(const std::unordered_map<std::string, uint64_t>& counts);
  Vocabulary(Vocabulary&&) = default;

  [[nodiscard]] size_t size() const { return words_.size(); }
  [[nodiscard]] const std::string& word(uint32_t index) const { return words_[index]; }
  [[nodiscard]] uint64_t count(uint32_t index) const { return counts_[index]; }
  // The index of a word; size() if the vocabulary does not have it.
  [[nodiscard]] uint32_t Find(std::string_view word) const;

  // The id of a word as a whole.
  [[nodiscard]] uint64_t id(uint32_t index) const { return part_ids_[part_offsets_[index]]; }
  // The ids of a word's parts: itself, and its character n-grams of 3 and 4 bytes, with the word's ends marked. Rare words
  // share n-grams with frequent ones and learn from them, as in fastText.
  [[nodiscard]] std::span<const uint64_t> parts(uint32_t index) const {
    return std::span(part_ids_).subspan(part_offsets_[index], part_offsets_[index + 1] - part_offsets_[index]);
  }

 private:
  void AddParts(const std::string& word);

  std::vector<std::string> words_;
  std::vector<uint64_t> counts_;
  std::unordered_map<std::string_view, uint32_t> index_;  // views into words_
  std::vector<size_t> part_offsets_ = {0};
  std::vector<uint64_t> part_ids_;
};

struct Corpus {
  Vocabulary vocabulary;
  std::vector<uint32_t> words;  // the text, as indexes into the vocabulary
  size_t files = 0;
};

// The text files that every Debian has: licences and the copyright files of packages.
std::vector<std::filesystem::path> DefaultTextFiles();

// The text files of a path: itself, or all below it, sorted. Throws JobError if there are none.
std::vector<std::filesystem::path> TextFilesOf(const std::filesystem::path& path);

// Reads files, duplicates once, up to `max_words` words (0: all). Throws JobError if there is too little text to learn from.
Corpus ReadCorpus(const std::vector<std::filesystem::path>& files, uint64_t max_words);

}  // namespace embedding_job
