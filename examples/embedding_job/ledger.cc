#include "ledger.h"

#include <utility>

namespace embedding_job {

using persia::metrics::Counter;
using persia::metrics::Description;
using persia::metrics::Gauge;
using persia::metrics::Histogram;
using persia::metrics::TimeCost;
using persia::metrics::catalog::Entry;

void TalliedCounter::Increment(uint64_t by) {
  const std::lock_guard lock(tally_->mutex);
  handle_.Increment(by);
  tally_->count += by;
}

void TalliedGauge::Set(double value) {
  const std::lock_guard lock(tally_->mutex);
  handle_.Set(value);
  tally_->last = value;
}

Ledger::Ledger(std::string role, int replica) : role_(std::move(role)), replica_(replica) {}

TalliedCounter Ledger::Add(const Entry& entry, Counter handle, std::string_view label_value) {
  return {handle, NewTally(persia::metrics::catalog::kGroup, entry.name, "counter", entry.label, label_value)};
}

TalliedGauge Ledger::Add(const Entry& entry, Gauge handle, std::string_view label_value) {
  return {handle, NewTally(persia::metrics::catalog::kGroup, entry.name, "gauge", entry.label, label_value)};
}

TalliedTimeCost Ledger::Add(const Entry& entry, TimeCost handle) {
  return {handle, NewTally(persia::metrics::catalog::kGroup, entry.name, "time_cost")};
}

TalliedCounter Ledger::NewCounter(std::string_view group, std::string_view name, const Description& about) {
  return {Counter(group, name, about), NewTally(group, name, "counter")};
}

TalliedGauge Ledger::NewGauge(std::string_view group, std::string_view name, const Description& about) {
  return {Gauge(group, name, about), NewTally(group, name, "gauge")};
}

TalliedHistogram Ledger::NewHistogram(std::string_view group, std::string_view name, const Description& about) {
  return {Histogram(group, name, persia::metrics::DefaultSecondsBounds(), about), NewTally(group, name, "histogram")};
}

Tally& Ledger::NewTally(std::string_view group, std::string_view name, std::string_view type, std::string_view label_name,
                        std::string_view label_value) {
  Tally& tally = tallies_.emplace_back();
  tally.group = group;
  tally.name = name;
  tally.type = type;
  tally.label_name = label_name;
  tally.label_value = label_value;
  return tally;
}

std::string Ledger::JsonOf(const Tally& tally) const {
  std::string json = "{\"role\":" + JsonText(role_) + ",\"replica\":" + std::to_string(replica_) +
                     ",\"group\":" + JsonText(tally.group) + ",\"name\":" + JsonText(tally.name) +
                     ",\"type\":" + JsonText(tally.type) + ",\"labels\":{";
  if (!tally.label_name.empty()) json += JsonText(tally.label_name) + ":" + JsonText(tally.label_value);
  json += "}";
  const std::string last = tally.last ? JsonNumber(*tally.last) : "null";
  if (tally.type == "counter")
    json += ",\"value\":" + std::to_string(tally.count);
  else if (tally.type == "gauge")
    json += ",\"value\":" + last;
  else
    json += ",\"count\":" + std::to_string(tally.count) + ",\"last\":" + last + ",\"sum\":" + JsonNumber(tally.sum);
  return json + "}";
}

ReportPart Ledger::Part(std::string job_fields) const {
  ReportPart part;
  part.job_fields = std::move(job_fields);
  for (const Tally& tally : tallies_)
    (tally.group == persia::metrics::catalog::kGroup ? part.metrics : part.own_metrics).push_back(JsonOf(tally));
  return part;
}

}  // namespace embedding_job
