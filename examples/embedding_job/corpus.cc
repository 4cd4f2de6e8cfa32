#include "corpus.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "hashing.h"
#include "job_error.h"

namespace embedding_job {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFewestWords = 100;
constexpr uint64_t kFewestOccurrences = 2;

// Adds the regular files below a folder. Links are skipped: their targets are in the folder anyway, or outside of it.
void AddFilesBelow(const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (std::error_code ignored; !entry->is_symlink(ignored) && entry->is_regular_file(ignored)) files.push_back(entry->path());
}

// Empty if the file cannot be read or is not text.
std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t kLookedAt = 4096;
  return std::memchr(text.data(), 0, std::min(text.size(), kLookedAt)) == nullptr ? text : std::string();
}

}  // namespace

Vocabulary::Vocabulary(const std::unordered_map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string_view, uint64_t>> ranked;
  for (const auto& [word, count] : counts)
    if (count >= kFewestOccurrences) ranked.emplace_back(word, count);
  // The order of equally frequent words must not depend on the hash table.
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  words_.reserve(ranked.size());
  for (const auto& [word, count] : ranked) {
    words_.emplace_back(word);
    counts_.push_back(count);
    index_.emplace(words_.back(), static_cast<uint32_t>(words_.size() - 1));
    AddParts(words_.back());
  }
}

uint32_t Vocabulary::Find(std::string_view word) const {
  const auto found = index_.find(word);
  return found == index_.end() ? static_cast<uint32_t>(size()) : found->second;
}

void Vocabulary::AddParts(const std::string& word) {
  // "=" is not in any word, so an n-gram never equals a word.
  part_ids_.push_back(HashText("=" + word));
  const std::string marked = "<" + word + ">";
  for (const size_t length : {3U, 4U}) {
    // An n-gram as long as the marked word would duplicate the word.
    for (size_t at = 0; length < marked.size() && at + length <= marked.size(); ++at)
      part_ids_.push_back(HashText(std::string_view(marked).substr(at, length)));
  }
  part_offsets_.push_back(part_ids_.size());
}

std::vector<fs::path> DefaultTextFiles() {
  std::vector<fs::path> files;
  AddFilesBelow("/usr/share/common-licenses", files);
  std::error_code error;
  fs::directory_iterator package("/usr/share/doc", error);
  for (; !error && package != fs::directory_iterator(); package.increment(error))
    if (std::error_code ignored; fs::is_regular_file(package->path() / "copyright", ignored))
      files.push_back(package->path() / "copyright");
  if (files.empty()) {
    throw JobError(
        "no text in /usr/share/common-licenses or /usr/share/doc/*/copyright: name a text file or a folder of them by --corpus "
        "PATH");
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> TextFilesOf(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw JobError("--corpus \"" + path.string() + "\": no such file or folder");
  std::vector<fs::path> files;
  if (fs::is_directory(status)) {
    AddFilesBelow(path, files);
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  if (files.empty()) throw JobError("--corpus \"" + path.string() + "\": no file in this folder");
  return files;
}

Corpus ReadCorpus(const std::vector<fs::path>& files, uint64_t max_words) {
  std::unordered_map<std::string, uint64_t> counts;
  std::vector<std::string> texts;
  std::unordered_set<uint64_t> seen;
  uint64_t words = 0;
  for (const fs::path& path : files) {
    if (max_words != 0 && words >= max_words) break;
    std::string text = ReadText(path);
    if (text.empty() || !seen.insert(HashText(text)).second) continue;
    ForEachWord(text, [&](std::string_view word) {
      ++counts[std::string(word)];
      ++words;
    });
    texts.push_back(std::move(text));
  }
  Corpus corpus{.vocabulary = Vocabulary(counts), .words = {}, .files = texts.size()};
  const auto unknown = static_cast<uint32_t>(corpus.vocabulary.size());
  for (const std::string& text : texts) {
    ForEachWord(
        text,
        [&](std::string_view word) {
          if (const uint32_t index = corpus.vocabulary.Find(word); index != unknown) corpus.words.push_back(index);
        });
  }
  if (corpus.words.size() < kFewestWords) {
    throw JobError("only " + std::to_string(corpus.words.size()) + " words that occur twice in " +
                   std::to_string(files.size()) + " files, \"" + files.front().string() +
                   "\" first: too little to learn from; at least " + std::to_string(kFewestWords) + " are needed");
  }
  return corpus;
}

}  // namespace embedding_job
