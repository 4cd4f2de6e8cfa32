#include "batch_maker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace embedding_job {
namespace {

constexpr uint32_t kPassageWords = 64;
constexpr size_t kNegativeTableSize = size_t{1} << 20;

// Words are drawn in proportion to their count to the power of 3/4, so less often than they occur.
std::vector<uint32_t> MakeNegativeTable(const Vocabulary& vocabulary) {
  std::vector<double> shares(vocabulary.size());
  double sum = 0;
  for (uint32_t word = 0; word < vocabulary.size(); ++word) {
    shares[word] = std::pow(static_cast<double>(vocabulary.count(word)), 0.75);
    sum += shares[word];
  }
  std::vector<uint32_t> table(kNegativeTableSize);
  double up_to = 0;
  size_t filled = 0;
  for (uint32_t word = 0; word < vocabulary.size(); ++word) {
    up_to += shares[word] / sum;
    const auto end = static_cast<size_t>(std::lround(up_to * static_cast<double>(kNegativeTableSize)));
    for (; filled < std::min(end, kNegativeTableSize); ++filled) table[filled] = word;
  }
  return table;
}

}  // namespace

BatchMaker::BatchMaker(const Corpus& corpus, const Options& options)
    : corpus_(corpus),
      options_(options),
      passage_words_(std::min(kPassageWords, options.batch_words)),
      random_(options.seed),
      negative_table_(MakeNegativeTable(corpus.vocabulary)) {
  for (size_t begin = 0; begin < corpus.words.size(); begin += passage_words_) passages_.push_back(begin);
  StartEpoch();
}

void BatchMaker::StartEpoch() {
  std::shuffle(passages_.begin(), passages_.end(), random_);
  next_passage_ = 0;
}

std::optional<Batch> BatchMaker::Next() {
  if (next_passage_ == passages_.size()) {
    ++epoch_;
    StartEpoch();
  }
  if (options_.epochs != 0 && epoch_ >= options_.epochs) return std::nullopt;
  Batch batch;
  while (next_passage_ < passages_.size() && batch.features[kCenter].rows() + passage_words_ <= options_.batch_words)
    AddPassage(passages_[next_passage_++], batch);
  AddNegatives(batch);
  batch.progress.batch = next_batch_++;
  batch.progress.epoch = epoch_;
  batch.progress.ends_epoch = next_passage_ == passages_.size() ? 1 : 0;
  return batch;
}

double BatchMaker::ShareDone() const {
  const double epochs = epoch_ + static_cast<double>(next_passage_) / static_cast<double>(passages_.size());
  return epochs / options_.epochs;
}

void BatchMaker::AddPassage(size_t begin, Batch& batch) {
  const size_t end = std::min(begin + passage_words_, corpus_.words.size());
  const auto first_row = static_cast<uint32_t>(batch.features[kContext].rows());
  const auto words = static_cast<uint32_t>(end - begin);
  Bags& centers = batch.features[kCenter];
  Bags& contexts = batch.features[kContext];
  for (uint32_t at = 0; at < words; ++at) {
    const uint32_t word = corpus_.words[begin + at];
    const std::span<const uint64_t> parts = corpus_.vocabulary.parts(word);
    centers.ids.insert(centers.ids.end(), parts.begin(), parts.end());
    centers.offsets.push_back(static_cast<uint32_t>(centers.ids.size()));
    contexts.ids.push_back(corpus_.vocabulary.id(word));
    contexts.offsets.push_back(static_cast<uint32_t>(contexts.ids.size()));

    const uint32_t reach = 1 + random_.Below(options_.window);
    for (uint32_t near = at - std::min(at, reach); near < std::min(at + reach + 1, words); ++near)
      if (near != at) batch.pairs.contexts.push_back(first_row + near);
    batch.pairs.offsets.push_back(static_cast<uint32_t>(batch.pairs.contexts.size()));
  }
}

// Draws one word for each centre. All centres of the batch share the drawn words, so that a row that is looked up once serves
// many pairs.
void BatchMaker::AddNegatives(Batch& batch) {
  Bags& contexts = batch.features[kContext];
  const auto drawn = static_cast<uint32_t>(contexts.rows());
  for (uint32_t i = 0; i < drawn; ++i) {
    contexts.ids.push_back(corpus_.vocabulary.id(DrawNegative()));
    contexts.offsets.push_back(static_cast<uint32_t>(contexts.ids.size()));
  }
  Pairs all;
  all.first_negative = drawn;
  all.contexts.reserve(batch.pairs.contexts.size() * (1 + options_.negatives));
  for (size_t row = 0; row + 1 < batch.pairs.offsets.size(); ++row) {
    const auto begin = batch.pairs.contexts.begin() + batch.pairs.offsets[row];
    const auto end = batch.pairs.contexts.begin() + batch.pairs.offsets[row + 1];
    all.contexts.insert(all.contexts.end(), begin, end);
    for (auto i = (end - begin) * options_.negatives; i > 0; --i) all.contexts.push_back(drawn + random_.Below(drawn));
    all.offsets.push_back(static_cast<uint32_t>(all.contexts.size()));
  }
  batch.pairs = std::move(all);
}

uint32_t BatchMaker::DrawNegative() { return negative_table_[random_.Below(static_cast<uint32_t>(negative_table_.size()))]; }

}  // namespace embedding_job
