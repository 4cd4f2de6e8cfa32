#include "push/group_owners.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "format/grouping_key.h"

namespace persia::agent {
namespace {

constexpr size_t kMostPageBytes = size_t{1} << 30;
constexpr size_t kLongestLine = 1 << 16;
constexpr size_t kMostOwners = 100'000;

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Reads `name="value"` and the comma after it; false at the end, or if it is malformed.
bool NextLabel(std::string_view& rest, std::string& name, std::string& value) {
  const size_t equals = rest.find("=\"");
  if (equals == std::string_view::npos) return false;
  name = rest.substr(0, equals);
  value.clear();
  size_t i = equals + 2;
  for (; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size()) {
      ++i;
      value += rest[i] == 'n' ? '\n' : rest[i];
    } else {
      value += rest[i];
    }
  }
  if (i >= rest.size()) return false;
  rest.remove_prefix(i + 1);
  if (rest.starts_with(',')) rest.remove_prefix(1);
  return true;
}

}  // namespace

Snapshot OwnerSnapshot(const std::string& agent_id, const std::string& gateway) {
  auto layout = std::make_shared<Layout>();
  layout->identities.emplace_back();
  layout->families.push_back({.name = std::string(kOwnerFamily),
                              .type = MetricType::kGauge,
                              .help = "1. The label agent_id is the agent that last pushed this group.",
                              .unit = "",
                              .bounds = {},
                              .series = {{.identity = 0,
                                          .first_value = 0,
                                          .labels = Labels{{"agent_gateway", GatewayHash(gateway)}, {"agent_id", agent_id}}}}});
  layout->value_count = 1;
  return {.layout = std::move(layout), .values = {1}, .collected_at = {}};
}

// FNV-1a.
std::string GatewayHash(std::string_view url) {
  uint32_t hash = 2166136261U;
  for (const char c : url) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", hash);
  return digits.data();
}

std::string OwnerKey(const Identity& identity) {
  Identity shown = identity;
  std::erase_if(shown.labels, [](const auto& label) { return label.second.empty(); });
  return GroupingKeyPath(shown);
}

bool OwnerScan::Add(std::string_view piece) {
  read_ += piece.size();
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    if (!skipped_) {
      line_ += piece.substr(0, end);
      const size_t compared = std::min(line_.size(), kOwnerFamily.size());
      skipped_ = line_.compare(0, compared, kOwnerFamily, 0, compared) != 0 || line_.size() > kLongestLine;
    }
    if (end == std::string_view::npos) break;
    EndLine();
    piece.remove_prefix(end + 1);
  }
  if (read_ >= kMostPageBytes || owners_.size() >= kMostOwners) cut_short_ = true;
  return !cut_short_;
}

void OwnerScan::EndLine() {
  if (!skipped_ && line_.size() > kOwnerFamily.size() && line_[kOwnerFamily.size()] == '{') {
    std::string_view rest = std::string_view(line_).substr(kOwnerFamily.size() + 1);
    Identity identity;
    Owner owner;
    std::string name;
    std::string value;
    while (NextLabel(rest, name, value)) {
      if (name == "job") {
        identity.job = value;
      } else if (name == "agent_id") {
        owner.agent_id = value;
      } else if (name == "agent_gateway") {
        owner.gateway_hash = value;
      } else {
        identity.labels.emplace_back(name, value);
      }
    }
    std::sort(identity.labels.begin(), identity.labels.end());
    if (!IsHex(owner.gateway_hash, 8)) owner.gateway_hash.clear();
    if (identity.job == job_ && !job_.empty() && IsHex(owner.agent_id, 16) && owners_.size() < kMostOwners)
      owners_[OwnerKey(identity)] = std::move(owner);
  }
  line_.clear();
  skipped_ = false;
}

}  // namespace persia::agent
