// The Persia metric tables, as ready instruments.
//
// The names are exactly PersiaML's. Their group is "persia", which adds no prefix to the exported name. Dashboards, rules,
// documents and tests are checked against this file.
//
//   auto misses = persia::metrics::catalog::IndexMissCount();
//   misses.Increment(missing);
//
// A process exports only the metrics that it makes. A counter or a time cost starts at 0; a gauge is exported after its first
// value.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "persia/metrics/family.h"
#include "persia/metrics/instruments.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace catalog {

// The group of all these metrics.
inline constexpr std::string_view kGroup = "persia";

// PersiaML's two tables of metrics.
enum class Table {
  kAccuracy,    // how good the training data and the embeddings are
  kEfficiency,  // how long the steps of a training batch take
};

// The type of a metric of the tables.
enum class Type {
  kCounter,   // a Counter
  kGauge,     // a Gauge
  kTimeCost,  // a TimeCost
};

// One metric of the tables.
struct Entry {
  std::string_view name;   // the metric's name, without the group
  Table table;             // the table that has it
  Type type;               // its type
  std::string_view unit;   // its unit, in the plural; "" for a count
  std::string_view label;  // its label's name; "" for none
  std::string_view help;   // one sentence: what is measured, and by which part of PersiaML
};

// The metrics of the tables. Each entry's `help` is its meaning.
// @{
inline constexpr Entry kIndexMissCount{
    "index_miss_count",
    Table::kAccuracy,
    Type::kCounter,
    "",
    "",
    "Embedding ids that a look-up asked for and the embedding server did not hold yet, counted by the server."};
inline constexpr Entry kIndexMissRatio{"index_miss_ratio",
                                       Table::kAccuracy,
                                       Type::kGauge,
                                       "ratio",
                                       "",
                                       "Share of the last look-up's ids that the embedding server did not hold yet, 0 to 1."};
inline constexpr Entry kGradientIdMissCount{
    "gradient_id_miss_count",
    Table::kAccuracy,
    Type::kCounter,
    "",
    "",
    "Embedding ids whose gradient arrived when the embedding server no longer held them, counted by the server."};
inline constexpr Entry kEstimatedDistinctId{
    "estimated_distinct_id",
    Table::kAccuracy,
    Type::kGauge,
    "",
    "feat",
    "Estimated number of distinct ids of a feature that the embedding worker has seen since its start."};
inline constexpr Entry kBatchUniqueIndicesRate{
    "batch_unique_indices_rate",
    Table::kAccuracy,
    Type::kGauge,
    "ratio",
    "feat",
    "Share of the ids of a feature in the embedding worker's last batch that remain after removing duplicates, 0 to 1."};
inline constexpr Entry kStaleness{
    "staleness",
    Table::kAccuracy,
    Type::kGauge,
    "",
    "",
    "Batches whose embeddings were looked up and whose gradients have not come back yet, at the embedding worker."};
inline constexpr Entry kNanCount{
    "nan_count",    Table::kAccuracy,
    Type::kCounter, "",
    "feat",         "Values of a feature's gradients that were NaN or infinite, counted by the embedding worker."};
inline constexpr Entry kNanGradSkipped{
    "nan_grad_skipped",
    Table::kAccuracy,
    Type::kCounter,
    "",
    "feat",
    "Gradients of a feature that the embedding worker did not apply because a value in them was NaN or infinite."};
inline constexpr Entry kLookupMixedBatchTimeCost{
    "lookup_mixed_batch_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time that an embedding server takes to look up one request's ids, which mix those of all features, in seconds."};
inline constexpr Entry kNumPendingBatches{"num_pending_batches",
                                          Table::kEfficiency,
                                          Type::kGauge,
                                          "",
                                          "",
                                          "Batches that wait at the embedding worker for their look-up by a trainer."};
inline constexpr Entry kLookupCreateRequestsTimeCost{
    "lookup_create_requests_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time that the embedding worker takes to remove duplicate ids and split a batch by server, in seconds."};
inline constexpr Entry kLookupRpcTimeCost{
    "lookup_rpc_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time that the embedding worker waits for all embedding servers to answer one batch's look-up, in seconds."};
inline constexpr Entry kUpdateGradientTimeCost{
    "update_gradient_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time from a batch's gradients reaching the embedding worker to all embedding servers having applied them, in seconds."};
inline constexpr Entry kSummationTimeCost{
    "summation_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time that the embedding worker takes to sum the looked-up embeddings of each sample of a batch, in seconds."};
inline constexpr Entry kLookupBatchedTimeCost{
    "lookup_batched_time_cost",
    Table::kEfficiency,
    Type::kTimeCost,
    "seconds",
    "",
    "Time that the embedding worker takes for one whole batch's look-up: requests, servers, and summation, in seconds."};
// @}

// All metrics, in the order of the tables.
inline constexpr std::array<const Entry*, 15> kEntries = {
    &kIndexMissCount,
    &kIndexMissRatio,
    &kGradientIdMissCount,
    &kEstimatedDistinctId,
    &kBatchUniqueIndicesRate,
    &kStaleness,
    &kNanCount,
    &kNanGradSkipped,
    &kLookupMixedBatchTimeCost,
    &kNumPendingBatches,
    &kLookupCreateRequestsTimeCost,
    &kLookupRpcTimeCost,
    &kUpdateGradientTimeCost,
    &kSummationTimeCost,
    &kLookupBatchedTimeCost,
};

// Makes the instrument of an entry. `Instrument` is Counter, Gauge, TimeCost or a Family of these.
template <class Instrument>
Instrument Make(const Entry& entry) {
  return Instrument(kGroup, entry.name, Description{std::string(entry.help), std::string(entry.unit), {}});
}

// The instrument of the entry with this name; a second call returns the same series. If the request is refused (instruments.h),
// the instrument counts nothing. Thread safety: any thread.
// @{
inline Counter IndexMissCount() { return Make<Counter>(kIndexMissCount); }
inline Gauge IndexMissRatio() { return Make<Gauge>(kIndexMissRatio); }
inline Counter GradientIdMissCount() { return Make<Counter>(kGradientIdMissCount); }
inline Family<Gauge> EstimatedDistinctId() { return Make<Family<Gauge>>(kEstimatedDistinctId); }
inline Family<Gauge> BatchUniqueIndicesRate() { return Make<Family<Gauge>>(kBatchUniqueIndicesRate); }
inline Gauge Staleness() { return Make<Gauge>(kStaleness); }
inline Family<Counter> NanCount() { return Make<Family<Counter>>(kNanCount); }
inline Family<Counter> NanGradSkipped() { return Make<Family<Counter>>(kNanGradSkipped); }
inline TimeCost LookupMixedBatchTimeCost() { return Make<TimeCost>(kLookupMixedBatchTimeCost); }
inline Gauge NumPendingBatches() { return Make<Gauge>(kNumPendingBatches); }
inline TimeCost LookupCreateRequestsTimeCost() { return Make<TimeCost>(kLookupCreateRequestsTimeCost); }
inline TimeCost LookupRpcTimeCost() { return Make<TimeCost>(kLookupRpcTimeCost); }
inline TimeCost UpdateGradientTimeCost() { return Make<TimeCost>(kUpdateGradientTimeCost); }
inline TimeCost SummationTimeCost() { return Make<TimeCost>(kSummationTimeCost); }
inline TimeCost LookupBatchedTimeCost() { return Make<TimeCost>(kLookupBatchedTimeCost); }
// @}

}  // namespace catalog
}  // namespace abi_1
}  // namespace persia::metrics
