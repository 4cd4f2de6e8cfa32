// Globs by dotted component, found without trying one after another: `workers.*.flakiness`.
//
// A `*` stands for one whole component, whatever it is; all others are taken to the letter. Each component is a step down a
// tree, so a look-up costs what the name's components do, however many globs there are.
// Thread safety: building is not thread-safe; looking up is, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace persia::agent {

class GlobTree {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Whether `glob` can be added; otherwise what is wrong with it.
  static std::string WhyBad(std::string_view glob);
  // How many `*` it has.
  static int Wildcards(std::string_view glob);

  // Whether there is no glob in it.
  [[nodiscard]] bool empty() const { return root_.smallest == kNone; }

  // Globs are numbered by those who add them, in ascending order. REQUIRES: WhyBad(glob) is empty.
  void Add(std::string_view glob, size_t number);

  // The smallest number of a glob that matches `name` and that `accept` takes; kNone if there is none. `captures` gets what
  // its `*` stand for.
  size_t FindFirst(std::string_view name, const std::function<bool(size_t)>& accept,
                   std::vector<std::string_view>& captures) const;
  // The same of the most specific: at each step from the left a component to the letter comes before `*`.
  size_t FindMostSpecific(std::string_view name, const std::function<bool(size_t)>& accept,
                          std::vector<std::string_view>& captures) const;

 private:
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
    std::unique_ptr<Node> any;    // the child of `*`
    std::vector<size_t> numbers;  // of the globs that end here
    size_t smallest = kNone;      // at or below
  };
  struct Search;

  Node root_;
};

}  // namespace persia::agent
