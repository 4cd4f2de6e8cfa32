#include "exposure/series_limits.h"

namespace persia::agent {

bool SeriesLimiter::Admit(const std::string& family, uint32_t identity, const Labels& labels) {
  for (const auto& [name, value] : labels) {
    if (value.size() > limits_.label_value_bytes) {
      ++left_out.label_value_limit;
      long_labels_.try_emplace(family, name);
      return false;
    }
  }
  if (identity >= series_of_.size()) series_of_.resize(identity + 1);
  if (series_of_[identity] >= limits_.series_of_instance) {
    ++left_out.instance_limit;
  } else if (series_ >= limits_.series) {
    ++left_out.agent_limit;
  } else {
    ++series_of_[identity];
    ++series_;
    return true;
  }
  over_limit_.try_emplace(identity, family);
  return false;
}

void SeriesLimiter::Report(const std::vector<Identity>& identities, Diagnostics& diagnostics) const {
  for (const auto& [name, label] : long_labels_) {
    diagnostics.Report("limit", "series of " + name + " are left out: values of their label " + label + " have more than " +
                                    std::to_string(limits_.label_value_bytes) + " bytes; shorten the values");
  }
  for (const auto& [index, name] : over_limit_) {
    const bool of_instance = series_of_[index] >= limits_.series_of_instance;
    std::string identity;
    for (const auto& [label, value] : identities[index].labels)
      identity += (identity.empty() ? "" : ", ") + label + " " + value;
    diagnostics.Report("limit", "series of " + identity + " are left out, first of " + name + ": there are more than " +
                                    (of_instance ? std::to_string(limits_.series_of_instance) + " of one instance"
                                                 : std::to_string(limits_.series) + " in total") +
                                    "; remove labels with an unbounded number of values, or raise " +
                                    (of_instance ? "max_series_per_instance" : "max_series"));
  }
}

}  // namespace persia::agent
