// The role that holds the embeddings: a share of all ids, which the embedding worker looks up and updates.
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint_folder.h"
#include "embedding_table.h"
#include "persia/metrics/metrics.h"
#include "role.h"
#include "rpc_server.h"

namespace embedding_job {
namespace {

namespace catalog = persia::metrics::catalog;

struct ServerMetrics {
  explicit ServerMetrics(Ledger& ledger)
      : index_miss_count(ledger.Add(catalog::kIndexMissCount, catalog::IndexMissCount())),
        index_miss_ratio(ledger.Add(catalog::kIndexMissRatio, catalog::IndexMissRatio())),
        gradient_id_miss_count(ledger.Add(catalog::kGradientIdMissCount, catalog::GradientIdMissCount())),
        lookup_mixed_batch_time_cost(ledger.Add(catalog::kLookupMixedBatchTimeCost, catalog::LookupMixedBatchTimeCost())),
        rows(ledger.NewGauge(kOwnGroup, "rows", {.help = "Embeddings that the server holds."})),
        evictions(ledger.NewCounter(kOwnGroup, "evictions_total", {.help = "Embeddings that the server evicted."})) {}

  TalliedCounter index_miss_count;
  TalliedGauge index_miss_ratio;
  TalliedCounter gradient_id_miss_count;
  TalliedTimeCost lookup_mixed_batch_time_cost;
  TalliedGauge rows;
  TalliedCounter evictions;
};

class EmbeddingServer : public RequestHandler {
 public:
  EmbeddingServer(const Options& options, Ledger& ledger, int replica)
      : dimension_(options.dimension),
        table_({.dimension = options.dimension,
                .capacity = options.server_capacity,
                .learning_rate = static_cast<float>(options.learning_rate),
                .seed = options.seed}),
        metrics_(ledger),
        checkpoints_(options.checkpoint_dir, "embedding_server_" + std::to_string(replica) + ".table") {}

  Frame Handle(const Frame& request) override {
    switch (request.type) {
      case MessageType::kLookup:
        return Look(request);
      case MessageType::kUpdate:
        return Apply(request);
      case MessageType::kCheckpoint:
        return Save(request);
      default:
        throw WireError("an embedding server does not answer frames of type " + std::to_string(static_cast<int>(request.type)));
    }
  }

  [[nodiscard]] uint64_t rows() const { return table_.rows(); }

 private:
  Frame Look(const Frame& request) {
    const persia::metrics::ScopedTimer timer(metrics_.lookup_mixed_batch_time_cost);
    const auto lookup = Decode<Lookup>(request);
    CheckDimension(lookup.dimension);
    Rows rows{std::vector<float>(lookup.ids.size() * dimension_)};
    const EmbeddingTable::LookedUp result = table_.Lookup(lookup.ids, rows.values.data());
    metrics_.index_miss_count.Increment(result.misses);
    metrics_.evictions.Increment(result.evictions);
    if (!lookup.ids.empty())
      metrics_.index_miss_ratio.Set(static_cast<double>(result.misses) / static_cast<double>(lookup.ids.size()));
    metrics_.rows.Set(static_cast<double>(table_.rows()));
    return Encode(rows);
  }

  Frame Apply(const Frame& request) {
    const auto update = Decode<Update>(request);
    CheckDimension(update.dimension);
    metrics_.gradient_id_miss_count.Increment(table_.Update(update.ids, update.gradients.data()));
    return {MessageType::kAck};
  }

  Frame Save(const Frame& request) {
    const std::string name = Decode<Checkpoint>(request).name;
    const std::lock_guard lock(checkpoints_mutex_);
    const EmbeddingTable::Saved saved = table_.Save(checkpoints_.Begin(name));
    checkpoints_.Finish(name);
    return Encode(CheckpointDone{.rows = saved.rows, .bytes = saved.bytes});
  }

  void CheckDimension(uint32_t dimension) const {
    if (dimension != dimension_)
      throw WireError("dimension " + std::to_string(dimension) + " is asked for; " + std::to_string(dimension_) + " is held");
  }

  const uint32_t dimension_;
  EmbeddingTable table_;
  ServerMetrics metrics_;
  std::mutex checkpoints_mutex_;
  CheckpointFolder checkpoints_;  // guarded by checkpoints_mutex_
};

}  // namespace

void RunEmbeddingServer(const RoleContext& context) {
  EmbeddingServer server(context.options, context.ledger, context.replica);
  Listener listener(context.options.listen);
  context.Say("listens on " + listener.address());
  RpcServer(listener, server, context.stop, kConnectionsToServer, context.options.dimension).Run();
  context.Say("ends with " + std::to_string(server.rows()) + " rows");
}

}  // namespace embedding_job
