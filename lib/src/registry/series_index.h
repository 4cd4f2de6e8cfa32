// A hash set of nodes that is read without a lock.
//
// Invariants:
//   1. A node is never moved or freed, and its key never changes.
//   2. A table has at least twice as many places as nodes, so a probe ends.
//   3. A grown table is published when it is complete. The former tables stay readable; together they are smaller than it.
//   4. A reader of a former table may miss the newest nodes. It then looks again under the writers' lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace persia::metrics {
inline namespace abi_1 {

// Node: has `size_t hash`.
template <class Node>
class SeriesIndex {
 public:
  // The node with this hash for which `matches(node)` is true, or null. Any thread, no lock.
  template <class Matches>
  Node* Find(size_t hash, const Matches& matches) const noexcept {
    // Pairs with the release in Grow.
    const Places* places = places_.load(std::memory_order_acquire);
    if (places == nullptr) return nullptr;
    for (size_t at = hash;; ++at) {
      // Pairs with the release in Place: a thread that reads the pointer sees the whole node.
      Node* node = (*places)[at & (places->size() - 1)].load(std::memory_order_acquire);
      if (node == nullptr || (node->hash == hash && matches(*node))) return node;
    }
  }

  // Throws std::bad_alloc; then nothing has changed, and the node is freed. REQUIRES: the writers' lock.
  Node* Insert(std::unique_ptr<Node> node) {
    Places* places = places_.load(std::memory_order_relaxed);
    if (places == nullptr || (nodes_.size() + 1) * 2 > places->size())
      places = Grow(places == nullptr ? 64 : places->size() * 2);
    nodes_.push_back(node.get());
    Place(*places, node.get());
    return node.release();
  }

  // In the order of insertion. REQUIRES: the writers' lock.
  [[nodiscard]] const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  using Places = std::vector<std::atomic<Node*>>;

  static void Place(Places& places, Node* node) {
    size_t at = node->hash;
    while (places[at & (places.size() - 1)].load(std::memory_order_relaxed) != nullptr) ++at;
    places[at & (places.size() - 1)].store(node, std::memory_order_release);
  }

  Places* Grow(size_t size) {
    auto* grown = new Places(size);  // the former one is never freed: a reader may still use it
    for (Node* node : nodes_) Place(*grown, node);
    places_.store(grown, std::memory_order_release);
    return grown;
  }

  std::atomic<Places*> places_ = nullptr;
  std::vector<Node*> nodes_;
};

}  // namespace abi_1
}  // namespace persia::metrics
