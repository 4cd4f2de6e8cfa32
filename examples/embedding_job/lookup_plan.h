// The embedding worker's arithmetic: turns a batch's ids into look-ups at the servers, and the answers into rows.
//
// Created once a batch, and kept until its gradients return. Thread safety: values; const methods from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "messages.h"

namespace embedding_job {

class LookupPlan {
 public:
  // Removes the duplicates of each feature and splits the rest by server. Ids of different features never collide: the highest
  // byte is the feature.
  LookupPlan(const std::array<Bags, kFeatures>& features, uint32_t servers, uint32_t dimension);

  // The ids to look up at each server: those of all features, each once.
  [[nodiscard]] const std::vector<std::vector<uint64_t>>& ids_of_server() const { return ids_of_server_; }
  // The number of distinct ids of a feature, and the number with duplicates.
  [[nodiscard]] std::vector<uint64_t> distinct_ids(size_t feature) const;
  [[nodiscard]] size_t distinct_count(size_t feature) const { return features_[feature].distinct; }
  [[nodiscard]] size_t id_count(size_t feature) const { return features_[feature].places.size(); }

  // The rows of a feature, each the sum of its bag, from the servers' answers.
  // REQUIRES: rows_of_server[s] has dimension floats for each of ids_of_server()[s].
  [[nodiscard]] std::vector<float> Sum(size_t feature, const std::vector<std::vector<float>>& rows_of_server) const;

  struct Rejected {
    uint64_t values = 0;  // NaN or infinite
    uint64_t rows = 0;    // with at least one of them
  };
  // Adds each row's gradient to the gradients of the ids in its bag. Skips rows that contain a NaN or an infinity.
  // REQUIRES: rows has dimension floats for each row of the feature; gradients_of_server is from EmptyGradients.
  Rejected Scatter(size_t feature, const std::vector<float>& rows, std::vector<std::vector<float>>& gradients_of_server) const;
  // Zeros, in the shape of ids_of_server().
  [[nodiscard]] std::vector<std::vector<float>> EmptyGradients() const;

  [[nodiscard]] size_t row_count(size_t feature) const { return features_[feature].offsets.size() - 1; }

 private:
  // The position of an id's row in the servers' answers.
  struct Place {
    uint32_t server;
    uint32_t index;
  };
  struct Feature {
    std::vector<uint32_t> offsets;
    std::vector<Place> places;  // of each id, including duplicates
    size_t distinct = 0;
  };

  const uint32_t dimension_;
  std::array<Feature, kFeatures> features_;
  std::vector<std::vector<uint64_t>> ids_of_server_;
};

}  // namespace embedding_job
