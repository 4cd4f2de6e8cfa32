// A set of nodes that is read without a lock.
//
// Invariants: nodes are never moved, changed in their key, or freed; a table has at least twice as many places as nodes, so a
// probe ends; a grown table is published whole, and the former one stays readable (all former ones together are smaller than
// the newest). A reader that holds a former table may miss the newest nodes, and then asks again under the writers' lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace persia::metrics {

// Node: has `size_t hash`.
template <class Node>
class SeriesIndex {
 public:
  // The node with this hash for which `matches(node)`; null: none. Any thread, no lock.
  template <class Matches>
  Node* Find(size_t hash, const Matches& matches) const noexcept {
    // Pairs with the release in Publish.
    const Places* places = places_.load(std::memory_order_acquire);
    if (places == nullptr) {
      return nullptr;
    }
    for (size_t at = hash;; ++at) {
      // Pairs with the release in Place: whoever sees the node sees what it holds.
      Node* node = (*places)[at & (places->size() - 1)].load(std::memory_order_acquire);
      if (node == nullptr || (node->hash == hash && matches(*node))) {
        return node;
      }
    }
  }

  // REQUIRES: the writers' lock; the node is in no index yet.
  void Insert(Node* node) {
    nodes_.push_back(node);
    Places* places = places_.load(std::memory_order_relaxed);
    if (places == nullptr || nodes_.size() * 2 > places->size()) {
      Grow(places == nullptr ? 64 : places->size() * 2);
    } else {
      Place(*places, node);
    }
  }

  // In the order of insertion. REQUIRES: the writers' lock.
  [[nodiscard]] const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  using Places = std::vector<std::atomic<Node*>>;

  static void Place(Places& places, Node* node) {
    size_t at = node->hash;
    while (places[at & (places.size() - 1)].load(std::memory_order_relaxed) != nullptr) {
      ++at;
    }
    places[at & (places.size() - 1)].store(node, std::memory_order_release);
  }

  void Grow(size_t size) {
    auto* grown = new Places(size);  // never freed: a reader may be in any of them
    for (Node* node : nodes_) {
      Place(*grown, node);
    }
    places_.store(grown, std::memory_order_release);
  }

  std::atomic<Places*> places_ = nullptr;
  std::vector<Node*> nodes_;
};

}  // namespace persia::metrics
