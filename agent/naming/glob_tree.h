// Globs by dotted component, such as `workers.*.flakiness`, in a tree: the cost of a lookup grows with the components of the
// name, not with the number of globs. A `*` matches one whole component.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

class GlobTree {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Whether `glob` can be added.
  static Status Check(std::string_view glob);
  // The number of `*` in it.
  static int Wildcards(std::string_view glob);

  // Numbers ascend from one Add to the next. REQUIRES: Check(glob).ok().
  void Add(std::string_view glob, size_t number);

  // The smallest number of a glob that matches `name` and that `accept` accepts, else kNone. `captures` receives the components
  // that its `*` match.
  size_t FindFirst(std::string_view name, const std::function<bool(size_t)>& accept,
                   std::vector<std::string_view>& captures) const {
    return Find(name, false, accept, captures);
  }
  // The number of the most specific such glob: in each component, from the left, a literal is preferred to `*`.
  size_t FindMostSpecific(std::string_view name, const std::function<bool(size_t)>& accept,
                          std::vector<std::string_view>& captures) const {
    return Find(name, true, accept, captures);
  }

 private:
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
    std::unique_ptr<Node> any;    // the child of `*`
    std::vector<size_t> numbers;  // of the globs that end here
    size_t smallest = kNone;      // number here or below
  };
  struct Search;

  size_t Find(std::string_view name, bool most_specific, const std::function<bool(size_t)>& accept,
              std::vector<std::string_view>& captures) const;

  Node root_;
};

}  // namespace persia::agent
