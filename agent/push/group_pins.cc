#include "push/group_pins.h"

#include <algorithm>
#include <string_view>

namespace persia::agent {
namespace {

constexpr uint64_t kSeed = 0xcbf29ce484222325;

// FNV-1a, with an end after each text, so that ("ab", "c") is not ("a", "bc").
uint64_t Add(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return (hash ^ 0x1ff) * 0x100000001b3;
}

// The finalizer of splitmix64: spreads a difference of a few bits over all of them.
uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

Identity StableIdentity(Identity identity) {
  std::erase_if(identity.labels, [](const auto& label) { return label.first == "ip_addr" || label.first == "agent"; });
  return identity;
}

GroupPins::GroupPins(std::vector<std::string> gateways) : gateways_(std::move(gateways)) {
  std::sort(gateways_.begin(), gateways_.end());
  for (const std::string& gateway : gateways_) hashes_.push_back(Mix(Add(kSeed, gateway)));
}

const std::string& GroupPins::GatewayOf(const Identity& identity) const {
  if (gateways_.size() == 1) return gateways_.front();
  const Identity stable = StableIdentity(identity);
  uint64_t group = Add(kSeed, stable.job);
  for (const auto& [name, value] : stable.labels) group = Add(Add(group, name), value);
  size_t best = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    const uint64_t weight = Mix(group ^ hashes_[i]);
    if (i == 0 || weight > most) {
      best = i;
      most = weight;
    }
  }
  return gateways_[best];
}

}  // namespace persia::agent
