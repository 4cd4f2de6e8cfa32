// The role that trains: it has the dense part of the model, and returns the gradients of the embeddings.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoint_folder.h"
#include "loss_record.h"
#include "persia/metrics/metrics.h"
#include "progress_line.h"
#include "random.h"
#include "report.h"
#include "role.h"
#include "skip_gram.h"
#include "trainer_link.h"

namespace embedding_job {
namespace {

using Clock = std::chrono::steady_clock;
namespace events = persia::metrics::events;
using persia::metrics::InPhase;
using persia::metrics::Phase;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct TrainerMetrics {
  explicit TrainerMetrics(Ledger& ledger)
      : batches(ledger.NewCounter(kOwnGroup, "batches_total", {.help = "Batches that the trainer has trained on."})),
        samples(ledger.NewCounter(kOwnGroup, "samples_total",
                                  {.help = "Pairs of words, neighbours or drawn at random, that the trainer has trained on."})),
        loss(ledger.NewGauge(kOwnGroup, "loss", {.help = "Mean cross-entropy of the last batch's pairs, in nats."})),
        step_time(ledger.NewHistogram(
            kOwnGroup, "step_time",
            {.help = "Time that the trainer takes for the loss and gradients of one batch, in seconds.", .unit = "seconds"})),
        broken_gradients(ledger.NewCounter(kOwnGroup, "broken_gradients_total",
                                           {.help = "Rows of gradients that the trainer broke on purpose, by --inject-nan."})) {
  }

  TalliedCounter batches;
  TalliedCounter samples;
  TalliedGauge loss;
  TalliedHistogram step_time;
  TalliedCounter broken_gradients;
};

// What the trainer does. The model derives the loss and the gradients in one pass.
struct TrainerPhases {
  const Phase data{"data"};          // waits for the embeddings of the next batch
  const Phase backward{"backward"};  // loss and gradients
  const Phase optimizer{"optimizer"};
  const Phase sync{"sync"};  // waits until the servers have applied earlier gradients
  const Phase checkpoint{"checkpoint"};
};

// The dense part's checkpoint: the projection row by row, then the bias, as floats.
void WriteDense(const std::filesystem::path& path, const std::vector<float>& floats) {
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(floats.data()), static_cast<std::streamsize>(floats.size() * sizeof(float)));
  file.close();
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  if (!file || error) throw JobError("cannot write the checkpoint \"" + path.string() + "\"");
}

class Trainer {
 public:
  Trainer(const RoleContext& context, Connection lookups, Connection updates)
      : options_(context.options),
        metrics_(context.ledger),
        model_(options_.dimension, static_cast<float>(options_.learning_rate)),
        random_(options_.seed),
        checkpoints_(options_.checkpoint_dir, "trainer.dense"),
        progress_(stdout),
        link_(std::move(lookups), std::move(updates), options_.staleness) {}

  void Train() {
    ProgressLine::State state;
    std::optional<Clock::time_point> start;
    while (std::optional<EmbeddingBatch> batch = Next()) {
      if (!start) start = Clock::now();
      Step(*batch);
      state.batches = losses_.batches();
      state.pairs += batch->pairs.contexts.size();
      state.epoch = batch->progress.epoch;
      state.loss = losses_.Last();
      state.elapsed_seconds = elapsed_seconds_ = SecondsSince(*start);
      state.remaining_seconds = batch->progress.remaining_seconds;
      TellProgress(state);
      progress_.Show(state);
      if (batch->progress.ends_epoch != 0) EndEpoch(batch->progress.epoch);
    }
    Save("final");
    {
      const InPhase in(phases_.sync);
      link_.Finish();
    }
    if (start) elapsed_seconds_ = SecondsSince(*start);
    progress_.End();
    std::printf("%s batches of %s pairs in %.1f s; loss %.4f at first, %.4f at last\n",
                ShortNumber(static_cast<double>(state.batches)).c_str(), ShortNumber(static_cast<double>(state.pairs)).c_str(),
                elapsed_seconds_, losses_.First(), losses_.Last());
    std::fflush(stdout);
  }

  [[nodiscard]] std::string JobFields() const {
    return "\"batches\":" + std::to_string(losses_.batches()) + ",\"first_loss\":" + JsonNumber(losses_.First()) +
           ",\"last_loss\":" + JsonNumber(losses_.Last()) + ",\"elapsed_seconds\":" + JsonNumber(elapsed_seconds_);
  }

 private:
  std::optional<EmbeddingBatch> Next() {
    const InPhase in(phases_.data);
    return link_.Next();
  }

  // The data loader says when it ends. Until then, the trainer expects to go on at its mean rate.
  static void TellProgress(const ProgressLine::State& state) {
    persia::metrics::CountSteps();
    const double rate = static_cast<double>(state.batches) / std::max(state.elapsed_seconds, 1e-9);
    if (const double left = rate * state.remaining_seconds; std::isfinite(left))
      persia::metrics::SetTotalSteps(state.batches + static_cast<uint64_t>(std::min(left, 1e15)));
  }

  void Step(const EmbeddingBatch& batch) {
    SkipGram::Gradients gradients;
    {
      const persia::metrics::ScopedTimer timer(metrics_.step_time);
      {
        const InPhase in(phases_.backward);
        gradients = model_.Derive(batch);
      }
      const InPhase in(phases_.optimizer);
      model_.Apply(gradients);
    }
    const size_t pairs = batch.pairs.contexts.size();
    if (pairs != 0) {
      losses_.Add(gradients.loss / static_cast<double>(pairs));
      metrics_.loss.Set(gradients.loss / static_cast<double>(pairs));
    }
    metrics_.batches.Increment();
    metrics_.samples.Increment(pairs);
    persia::metrics::CountSamples(pairs);
    for (std::vector<float>& rows : gradients.rows) MaybeBreak(rows);
    const InPhase in(phases_.sync);
    link_.Return({.batch = batch.progress.batch, .dimension = batch.dimension, .rows = std::move(gradients.rows)});
  }

  // Puts NaNs into one row, as an overflow in a step would.
  void MaybeBreak(std::vector<float>& rows) {
    if (rows.empty() || random_.Share() >= options_.inject_nan) return;
    float* row =
        rows.data() + size_t{random_.Below(static_cast<uint32_t>(rows.size() / options_.dimension))} * options_.dimension;
    row[random_.Below(options_.dimension)] = std::numeric_limits<float>::quiet_NaN();
    row[random_.Below(options_.dimension)] = std::numeric_limits<float>::infinity();
    metrics_.broken_gradients.Increment();
  }

  void EndEpoch(uint32_t epoch) {
    events::Record(kOwnGroup, "epoch_end", {{"epoch", int64_t{epoch} + 1}, {"loss", losses_.Last()}});
    std::string number = std::to_string(epoch + 1);
    number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
    Save("epoch_" + number);
  }

  void Save(const std::string& name) {
    const InPhase in(phases_.checkpoint);
    std::vector<float> dense = model_.projection();
    dense.push_back(model_.bias());
    WriteDense(checkpoints_.Begin(name), dense);
    checkpoints_.Finish(name);
    link_.Save(name, [name, asked = Clock::now()](const CheckpointDone& done) {
      const double milliseconds = SecondsSince(asked) * 1000;
      // Under torchelastic's name, for all embedding servers together.
      persia::metrics::PutMetric("checkpoint.write_latency_ms", milliseconds);
      events::Record(kOwnGroup, "checkpoint",
                     {{"name", std::string_view(name)},
                      {"rows", static_cast<int64_t>(done.rows)},
                      {"bytes", static_cast<int64_t>(done.bytes)},
                      {"milliseconds", milliseconds}});
    });
  }

  const Options& options_;
  TrainerMetrics metrics_;
  const TrainerPhases phases_;
  SkipGram model_;
  Random random_;
  CheckpointFolder checkpoints_;
  ProgressLine progress_;
  LossRecord losses_;
  double elapsed_seconds_ = 0;
  TrainerLink link_;  // last: its threads use the members above
};

}  // namespace

std::string RunTrainer(const RoleContext& context) {
  const Hello hello{.role = std::string(NameOf(context.options.role)), .dimension = context.options.dimension};
  const Address worker = Address::Parse(context.options.worker);
  const auto deadline = context.ConnectDeadline();
  const auto open = [&] { return Connection::Open(worker, "embedding_worker", hello, deadline, context.stop); };
  Connection lookups = open();
  Connection updates = open();
  Trainer trainer(context, std::move(lookups), std::move(updates));
  trainer.Train();
  return trainer.JobFields();
}

}  // namespace embedding_job
