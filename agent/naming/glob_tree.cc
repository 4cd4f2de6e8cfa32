#include "naming/glob_tree.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

constexpr std::string_view kAny = "*";
// Search and destruction of the tree are recursive.
constexpr size_t kMaxComponents = 64;

std::vector<std::string_view> Components(std::string_view text) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t dot = text.find('.');
    out.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return out;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

// The walk down the tree for one name.
struct GlobTree::Search {
  const std::vector<std::string_view>& components;
  const std::function<bool(size_t)>& accept;
  const bool most_specific;
  std::vector<std::string_view> captures = {};
  size_t best = kNone;
  std::vector<std::string_view> best_captures = {};

  void Walk(const Node& node, size_t depth) {
    if (node.smallest >= best || (most_specific && best != kNone)) return;
    if (depth == components.size()) {
      const auto found = std::find_if(node.numbers.begin(), node.numbers.end(), std::ref(accept));
      if (found != node.numbers.end() && *found < best) {
        best = *found;
        best_captures = captures;
      }
      return;
    }
    if (const auto child = node.children.find(components[depth]); child != node.children.end()) Walk(*child->second, depth + 1);
    if (node.any != nullptr) {
      captures.push_back(components[depth]);
      Walk(*node.any, depth + 1);
      captures.pop_back();
    }
  }
};

Status GlobTree::Check(std::string_view glob) {
  if (glob.empty()) return Bad(glob, "is empty");
  const auto components = Components(glob);
  if (components.size() > kMaxComponents) return Bad(glob, "has more than " + std::to_string(kMaxComponents) + " components");
  for (const std::string_view component : components) {
    if (component.empty()) return Bad(glob, "has an empty component: two dots, or one at an end");
    if (component != kAny && component.find('*') != std::string_view::npos)
      return Bad(glob, "has a * that is not a whole component between dots; use match_type: regex for that");
  }
  return Done{};
}

int GlobTree::Wildcards(std::string_view glob) {
  const auto components = Components(glob);
  return static_cast<int>(std::count(components.begin(), components.end(), kAny));
}

void GlobTree::Add(std::string_view glob, size_t number) {
  Node* node = &root_;
  node->smallest = std::min(node->smallest, number);
  for (const std::string_view component : Components(glob)) {
    std::unique_ptr<Node>& child =
        component == kAny ? node->any : node->children.try_emplace(std::string(component)).first->second;
    if (child == nullptr) child = std::make_unique<Node>();
    node = child.get();
    node->smallest = std::min(node->smallest, number);
  }
  node->numbers.push_back(number);
}

size_t GlobTree::Find(std::string_view name, bool most_specific, const std::function<bool(size_t)>& accept,
                      std::vector<std::string_view>& captures) const {
  const auto components = Components(name);
  Search search{components, accept, most_specific};
  search.Walk(root_, 0);
  captures = std::move(search.best_captures);
  return search.best;
}

}  // namespace persia::agent
