// The role that reads the text and makes batches.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "batch_maker.h"
#include "corpus.h"
#include "persia/metrics/metrics.h"
#include "role.h"
#include "socket.h"

namespace embedding_job {
namespace {

using Clock = std::chrono::steady_clock;

// The time at which no more batches are made.
class Schedule {
 public:
  Schedule(double duration, uint32_t epochs)
      : duration_(duration > 0 ? duration : std::numeric_limits<double>::infinity()), epochs_(epochs), start_(Clock::now()) {}

  [[nodiscard]] double RemainingSeconds(const BatchMaker& maker) const {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    double remaining = duration_ - elapsed;
    if (epochs_ != 0) {
      const double done = maker.ShareDone();
      remaining = std::min(remaining, elapsed * (1 - done) / std::max(done, 1e-9));
    }
    return std::max(remaining, 0.0);
  }
  [[nodiscard]] bool TimeIsUp() const { return std::chrono::duration<double>(Clock::now() - start_).count() >= duration_; }

 private:
  const double duration_;
  const uint32_t epochs_;
  const Clock::time_point start_;
};

Corpus ReadText(const Options& options) {
  return ReadCorpus(options.corpus.empty() ? DefaultTextFiles() : TextFilesOf(options.corpus), options.max_words);
}

}  // namespace

void RunDataLoader(const RoleContext& context) {
  const Options& options = context.options;
  const Corpus corpus = ReadText(options);
  context.Say("reads " + std::to_string(corpus.words.size()) + " words from " + std::to_string(corpus.files) +
              " files, with a vocabulary of " + std::to_string(corpus.vocabulary.size()));
  TalliedCounter batches = context.ledger.NewCounter(kOwnGroup, "batches_sent_total",
                                                     {.help = "Batches that the data loader sent to the embedding worker."});
  TalliedCounter tokens =
      context.ledger.NewCounter(kOwnGroup, "tokens_total", {.help = "Words of text in the batches that were sent."});
  TalliedGauge vocabulary = context.ledger.NewGauge(kOwnGroup, "vocabulary", {.help = "Different words in the text."});
  vocabulary.Set(static_cast<double>(corpus.vocabulary.size()));

  Connection worker =
      Connection::Open(Address::Parse(options.worker), "embedding_worker",
                       {.role = std::string(NameOf(options.role)), .dimension = 0}, context.ConnectDeadline(), context.stop);
  BatchMaker maker(corpus, {.batch_words = options.batch_size, .epochs = options.epochs, .seed = options.seed});
  const Schedule schedule(options.duration, options.epochs);
  const persia::metrics::Phase data("data");
  const persia::metrics::Phase sync("sync");  // waits until the worker has space for a batch
  bool answer_due = false;
  while (!context.stop.Requested() && !schedule.TimeIsUp()) {
    std::optional<Batch> batch;
    {
      const persia::metrics::InPhase in(data);
      batch = maker.Next();
    }
    if (!batch) break;
    batch->progress.remaining_seconds = static_cast<float>(schedule.RemainingSeconds(maker));
    const Frame frame = Encode(*batch);
    const persia::metrics::InPhase in(sync);
    // This batch was made while the worker still had no space for the previous one.
    if (answer_due) Expect(worker.Answer(), MessageType::kAck);
    worker.Send(frame);
    answer_due = true;
    batches.Increment();
    tokens.Increment(batch->features[kCenter].rows());
    persia::metrics::CountTokens(batch->features[kCenter].rows());
  }
  const persia::metrics::InPhase in(sync);
  if (answer_due) Expect(worker.Answer(), MessageType::kAck);
  Expect(worker.Call({MessageType::kEndOfData}), MessageType::kAck);
  worker.Send({MessageType::kGoodbye});
}

}  // namespace embedding_job
