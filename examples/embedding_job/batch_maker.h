// Makes batches out of a corpus: skip-gram with negative sampling (Mikolov et al. 2013).
//
// An epoch goes once through the text, in passages of random order. Each word of a passage is a centre. It is paired with its
// neighbours, at most `window` words away; the distance is drawn for each centre, so that near ones count more. It is also
// paired with random words, `negatives` times as many as neighbours. Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "corpus.h"
#include "messages.h"
#include "random.h"

namespace embedding_job {

class BatchMaker {
 public:
  struct Options {
    uint32_t batch_words = 512;
    uint32_t epochs = 0;     // 0: unlimited
    uint32_t window = 5;     // words, on each side
    uint32_t negatives = 4;  // for each neighbour
    uint64_t seed = 1;
  };

  // `corpus` must outlive it.
  BatchMaker(const Corpus& corpus, const Options& options);

  // The next batch, without its remaining time. None after the last epoch.
  std::optional<Batch> Next();

  // The share of all epochs that Next has returned. REQUIRES: epochs != 0.
  [[nodiscard]] double ShareDone() const;

 private:
  void StartEpoch();
  // Adds the centres, contexts and neighbours of one passage.
  void AddPassage(size_t begin, Batch& batch);
  void AddNegatives(Batch& batch);
  uint32_t DrawNegative();

  const Corpus& corpus_;
  const Options options_;
  const uint32_t passage_words_;
  Random random_;
  std::vector<uint32_t> negative_table_;  // words, each in proportion to its probability
  std::vector<size_t> passages_;          // the first word of each, in this epoch's order
  size_t next_passage_ = 0;
  uint32_t epoch_ = 0;
  uint64_t next_batch_ = 0;
};

}  // namespace embedding_job
