// The role in the middle: takes batches of ids from the data loader, sends batches of embeddings to the trainer, and returns
// the gradients to the servers.
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel.h"
#include "hyperloglog.h"
#include "lookup_plan.h"
#include "persia/metrics/metrics.h"
#include "role.h"
#include "rpc_server.h"
#include "server_group.h"

namespace embedding_job {
namespace {

namespace catalog = persia::metrics::catalog;
using persia::metrics::ScopedTimer;

// The series of one feature, created at the start so that a count of 0 is exported too.
struct FeatureMetrics {
  FeatureMetrics(Ledger& ledger, std::string_view feature)
      : estimated_distinct_id(
            ledger.Add(catalog::kEstimatedDistinctId, catalog::EstimatedDistinctId().With({{"feat", feature}}), feature)),
        batch_unique_indices_rate(
            ledger.Add(catalog::kBatchUniqueIndicesRate, catalog::BatchUniqueIndicesRate().With({{"feat", feature}}), feature)),
        nan_count(ledger.Add(catalog::kNanCount, catalog::NanCount().With({{"feat", feature}}), feature)),
        nan_grad_skipped(ledger.Add(catalog::kNanGradSkipped, catalog::NanGradSkipped().With({{"feat", feature}}), feature)) {}

  TalliedGauge estimated_distinct_id;
  TalliedGauge batch_unique_indices_rate;
  TalliedCounter nan_count;
  TalliedCounter nan_grad_skipped;
};

struct WorkerMetrics {
  explicit WorkerMetrics(Ledger& ledger)
      : features{FeatureMetrics(ledger, kFeatureNames[kCenter]), FeatureMetrics(ledger, kFeatureNames[kContext])},
        staleness(ledger.Add(catalog::kStaleness, catalog::Staleness())),
        num_pending_batches(ledger.Add(catalog::kNumPendingBatches, catalog::NumPendingBatches())),
        lookup_create_requests_time_cost(
            ledger.Add(catalog::kLookupCreateRequestsTimeCost, catalog::LookupCreateRequestsTimeCost())),
        lookup_rpc_time_cost(ledger.Add(catalog::kLookupRpcTimeCost, catalog::LookupRpcTimeCost())),
        update_gradient_time_cost(ledger.Add(catalog::kUpdateGradientTimeCost, catalog::UpdateGradientTimeCost())),
        summation_time_cost(ledger.Add(catalog::kSummationTimeCost, catalog::SummationTimeCost())),
        lookup_batched_time_cost(ledger.Add(catalog::kLookupBatchedTimeCost, catalog::LookupBatchedTimeCost())) {
    staleness.Set(0);
    num_pending_batches.Set(0);
  }

  std::array<FeatureMetrics, kFeatures> features;
  TalliedGauge staleness;
  TalliedGauge num_pending_batches;
  TalliedTimeCost lookup_create_requests_time_cost;
  TalliedTimeCost lookup_rpc_time_cost;
  TalliedTimeCost update_gradient_time_cost;
  TalliedTimeCost summation_time_cost;
  TalliedTimeCost lookup_batched_time_cost;
};

class EmbeddingWorker : public RequestHandler {
 public:
  EmbeddingWorker(const Options& options, Ledger& ledger, ServerGroup& lookups, ServerGroup& updates)
      : dimension_(options.dimension),
        lookups_(lookups),
        updates_(updates),
        metrics_(ledger),
        pending_(options.pending, [this](size_t size) { metrics_.num_pending_batches.Set(static_cast<double>(size)); }) {}

  Frame Handle(const Frame& request) override {
    switch (request.type) {
      case MessageType::kBatch:
        return TakeBatch(request);
      case MessageType::kEndOfData:
        pending_.Close();
        return {MessageType::kAck};
      case MessageType::kNextBatch:
        return LookUpNext();
      case MessageType::kGradients:
        return ReturnGradients(request);
      case MessageType::kCheckpoint:
        return Save(request);
      default:
        throw WireError("an embedding worker does not answer frames of type " + std::to_string(static_cast<int>(request.type)));
    }
  }

  // A data loader that sends batches learns of the stop by the next answer, and ends the data. One that has not begun must not
  // be waited for.
  void StopRequested() override {
    const std::lock_guard lock(mutex_);
    if (!data_began_) pending_.Close();
  }

  void Abort() override { pending_.Close(); }

 private:
  // Answers when there is space, so that the data loader does not run ahead.
  Frame TakeBatch(const Frame& request) {
    auto batch = Decode<Batch>(request);
    {
      const std::lock_guard lock(mutex_);
      data_began_ = true;
    }
    pending_.Push(std::move(batch));
    return {MessageType::kAck};
  }

  Frame LookUpNext() {
    std::optional<Batch> batch = pending_.Pop();
    if (!batch) return {MessageType::kEndOfData};
    EmbeddingBatch out{.progress = batch->progress, .dimension = dimension_, .rows = {}, .pairs = std::move(batch->pairs)};
    LookupPlan plan = LookUp(batch->features, out.rows);
    for (size_t f = 0; f < kFeatures; ++f) Watch(f, plan);
    const std::lock_guard lock(mutex_);
    if (!in_flight_.emplace(out.progress.batch, std::move(plan)).second)
      throw JobError("batch " + std::to_string(out.progress.batch) + " came twice");
    metrics_.staleness.Set(static_cast<double>(in_flight_.size()));
    return Encode(out);
  }

  LookupPlan LookUp(const std::array<Bags, kFeatures>& features, std::array<std::vector<float>, kFeatures>& rows) {
    const ScopedTimer whole(metrics_.lookup_batched_time_cost);
    std::optional<LookupPlan> plan;
    std::vector<Frame> requests;
    {
      const ScopedTimer timer(metrics_.lookup_create_requests_time_cost);
      plan.emplace(features, lookups_.size(), dimension_);
      for (const std::vector<uint64_t>& ids : plan->ids_of_server())
        requests.push_back(Encode(Lookup{.dimension = dimension_, .ids = ids}));
    }
    std::vector<Frame> answers;
    {
      const ScopedTimer timer(metrics_.lookup_rpc_time_cost);
      answers = lookups_.CallAll(requests);
    }
    std::vector<std::vector<float>> rows_of_server;
    for (size_t server = 0; server < answers.size(); ++server) {
      rows_of_server.push_back(Decode<Rows>(answers[server]).values);
      if (rows_of_server.back().size() != plan->ids_of_server()[server].size() * dimension_) {
        throw WireError("embedding server " + std::to_string(server) +
                        " answered with another number of rows than it was asked for");
      }
    }
    const ScopedTimer timer(metrics_.summation_time_cost);
    for (size_t f = 0; f < kFeatures; ++f) rows[f] = plan->Sum(f, rows_of_server);
    return std::move(*plan);
  }

  void Watch(size_t feature, const LookupPlan& plan) {
    const std::lock_guard lock(seen_mutex_);
    HyperLogLog& seen = seen_[feature];
    for (const uint64_t id : plan.distinct_ids(feature)) seen.Add(id);
    metrics_.features[feature].estimated_distinct_id.Set(seen.Estimate());
    if (plan.id_count(feature) != 0) {
      metrics_.features[feature].batch_unique_indices_rate.Set(static_cast<double>(plan.distinct_count(feature)) /
                                                               static_cast<double>(plan.id_count(feature)));
    }
  }

  Frame ReturnGradients(const Frame& request) {
    const ScopedTimer timer(metrics_.update_gradient_time_cost);
    const auto batch = Decode<GradientBatch>(request);
    const LookupPlan plan = TakeInFlight(batch.batch);
    std::vector<std::vector<float>> gradients = plan.EmptyGradients();
    for (size_t f = 0; f < kFeatures; ++f) {
      if (batch.rows[f].size() != plan.row_count(f) * dimension_)
        throw WireError("the gradients of batch " + std::to_string(batch.batch) + " have another shape than its embeddings");
      const LookupPlan::Rejected rejected = plan.Scatter(f, batch.rows[f], gradients);
      metrics_.features[f].nan_count.Increment(rejected.values);
      metrics_.features[f].nan_grad_skipped.Increment(rejected.rows);
    }
    std::vector<Frame> requests;
    for (size_t server = 0; server < gradients.size(); ++server) {
      requests.push_back(Encode(
          Update{.dimension = dimension_, .ids = plan.ids_of_server()[server], .gradients = std::move(gradients[server])}));
    }
    for (const Frame& answer : updates_.CallAll(requests)) Expect(answer, MessageType::kAck);
    return {MessageType::kAck};
  }

  LookupPlan TakeInFlight(uint64_t batch) {
    const std::lock_guard lock(mutex_);
    auto node = in_flight_.extract(batch);
    if (node.empty()) throw WireError("gradients of batch " + std::to_string(batch) + ", which is not in flight");
    metrics_.staleness.Set(static_cast<double>(in_flight_.size()));
    return std::move(node.mapped());
  }

  Frame Save(const Frame& request) {
    CheckpointDone all;
    for (const Frame& answer : updates_.CallAll(std::vector<Frame>(updates_.size(), request))) {
      const auto done = Decode<CheckpointDone>(answer);
      all.rows += done.rows;
      all.bytes += done.bytes;
    }
    return Encode(all);
  }

  const uint32_t dimension_;
  ServerGroup& lookups_;
  ServerGroup& updates_;
  WorkerMetrics metrics_;
  Channel<Batch> pending_;

  std::mutex seen_mutex_;
  std::array<HyperLogLog, kFeatures> seen_;  // guarded by seen_mutex_

  std::mutex mutex_;
  bool data_began_ = false;                             // guarded by mutex_
  std::unordered_map<uint64_t, LookupPlan> in_flight_;  // guarded by mutex_: looked up, gradients not back yet
};

}  // namespace

void RunEmbeddingWorker(const RoleContext& context) {
  const Options& options = context.options;
  Listener listener(options.listen);
  context.Say("listens on " + listener.address());
  const Hello hello{.role = std::string(NameOf(options.role)), .dimension = options.dimension};
  const auto deadline = context.ConnectDeadline();
  // Two of each, so that look-ups and updates do not wait for each other.
  ServerGroup lookups(options.servers, hello, deadline, context.stop);
  ServerGroup updates(options.servers, hello, deadline, context.stop);
  EmbeddingWorker worker(options, context.ledger, lookups, updates);
  RpcServer(listener, worker, context.stop, kConnectionsToWorker, options.dimension).Run();
  lookups.Goodbye();
  updates.Goodbye();
}

}  // namespace embedding_job
