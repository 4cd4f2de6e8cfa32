#include "lookup_plan.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "hashing.h"
#include "vector_ops.h"

namespace embedding_job {
namespace {

constexpr int kFeatureShift = 56;

uint64_t WithFeature(uint64_t id, size_t feature) {
  return (id & ((uint64_t{1} << kFeatureShift) - 1)) | (uint64_t{feature + 1} << kFeatureShift);
}

// The number of NaNs and infinities: numbers whose exponent has all bits set.
uint64_t CountBroken(const float* values, size_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint64_t broken = 0;
  for (size_t i = 0; i < count; ++i) broken += (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent ? 1 : 0;
  return broken;
}

// The distinct ids of one feature in a batch, by open addressing.
class IdTable {
 public:
  explicit IdTable(size_t ids) : entries_(std::bit_ceil(2 * ids + 1), Entry{0, 0}) {}

  // The number that the caller stored for this id, or 0 if it is new.
  uint32_t& operator[](uint64_t id) {
    size_t at = MixBits(id) & (entries_.size() - 1);
    while (entries_[at].number != 0 && entries_[at].id != id) at = (at + 1) & (entries_.size() - 1);
    entries_[at].id = id;
    return entries_[at].number;
  }

 private:
  struct Entry {
    uint64_t id;
    uint32_t number;
  };
  std::vector<Entry> entries_;
};

}  // namespace

LookupPlan::LookupPlan(const std::array<Bags, kFeatures>& features, uint32_t servers, uint32_t dimension)
    : dimension_(dimension), ids_of_server_(servers) {
  for (size_t f = 0; f < kFeatures; ++f) {
    Feature& feature = features_[f];
    feature.offsets = features[f].offsets;
    feature.places.reserve(features[f].ids.size());
    IdTable numbers(features[f].ids.size());
    std::vector<Place> distinct;
    for (const uint64_t raw : features[f].ids) {
      const uint64_t id = WithFeature(raw, f);
      uint32_t& number = numbers[id];
      if (number == 0) {
        const uint32_t server = ServerOf(id, servers);
        distinct.push_back({server, static_cast<uint32_t>(ids_of_server_[server].size())});
        ids_of_server_[server].push_back(id);
        number = static_cast<uint32_t>(distinct.size());
      }
      feature.places.push_back(distinct[number - 1]);
    }
    feature.distinct = distinct.size();
  }
}

std::vector<uint64_t> LookupPlan::distinct_ids(size_t feature) const {
  std::vector<uint64_t> ids;
  ids.reserve(features_[feature].distinct);
  for (const std::vector<uint64_t>& of_server : ids_of_server_) {
    for (const uint64_t id : of_server)
      if (id >> kFeatureShift == feature + 1) ids.push_back(id);
  }
  return ids;
}

std::vector<float> LookupPlan::Sum(size_t feature, const std::vector<std::vector<float>>& rows_of_server) const {
  const Feature& of = features_[feature];
  std::vector<float> sums(row_count(feature) * dimension_);
  for (size_t row = 0; row < row_count(feature); ++row) {
    float* sum = sums.data() + row * dimension_;
    for (uint32_t at = of.offsets[row]; at < of.offsets[row + 1]; ++at) {
      const Place place = of.places[at];
      AddTo(sum, rows_of_server[place.server].data() + size_t{place.index} * dimension_, dimension_);
    }
  }
  return sums;
}

LookupPlan::Rejected LookupPlan::Scatter(size_t feature, const std::vector<float>& rows,
                                         std::vector<std::vector<float>>& gradients_of_server) const {
  const Feature& of = features_[feature];
  Rejected rejected;
  for (size_t row = 0; row < row_count(feature); ++row) {
    const float* gradient = rows.data() + row * dimension_;
    if (const uint64_t broken = CountBroken(gradient, dimension_); broken != 0) {
      rejected.values += broken;
      ++rejected.rows;
      continue;
    }
    for (uint32_t at = of.offsets[row]; at < of.offsets[row + 1]; ++at) {
      const Place place = of.places[at];
      AddTo(gradients_of_server[place.server].data() + size_t{place.index} * dimension_, gradient, dimension_);
    }
  }
  return rejected;
}

std::vector<std::vector<float>> LookupPlan::EmptyGradients() const {
  std::vector<std::vector<float>> gradients;
  for (const std::vector<uint64_t>& ids : ids_of_server_) gradients.emplace_back(ids.size() * dimension_);
  return gradients;
}

}  // namespace embedding_job
