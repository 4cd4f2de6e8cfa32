// Names of metrics and labels for readers that do not take all of UTF-8, by Prometheus' specification
// (https://prometheus.io/docs/instrumenting/escaping_schemes/).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/plain_name.h"
#include "model/snapshot.h"

namespace persia::agent {

enum class NameEscaping : uint8_t {
  kAllowUtf8,    // names as they are
  kUnderscores,  // my.metric: my_metric
  kDots,         // my.metric: my_dot_metric; `_` becomes `__`, also in a name that all readers take
  kValues,       // my.metric: U__my_2e_metric
};

// As in the parameter `escaping` of Accept and Content-Type: "allow-utf-8", "underscores", "dots", "values".
[[nodiscard]] std::string_view ToString(NameEscaping escaping);

// Of a metric: a colon stays. REQUIRES: `name` is valid UTF-8.
[[nodiscard]] std::string EscapeName(std::string_view name, NameEscaping escaping);

// Whether all names are plain: then only kDots changes any.
[[nodiscard]] bool HasPlainNames(const Layout& layout);

// The layout with escaped names; the same object if none changes. If two names would become one, or a label's name would begin
// with `__`, which is reserved, the one that changes is escaped by kValues instead, and followed by `_` while that is a name,
// too. A series' label that has the name of an escaped label of its identity is renamed to `exported_<name>`. The values of a
// snapshot stay where they are.
[[nodiscard]] std::shared_ptr<const Layout> WithEscapedNames(std::shared_ptr<const Layout> layout, NameEscaping escaping);

// Snapshots for destinations that take plain names alone.
//
//   lanes.Offer(escaper.Escape(snapshot));
//
// Thread safety: none.
class SnapshotEscaper {
 public:
  // With kUnderscores; the same object if all names are plain.
  std::shared_ptr<const Snapshot> Escape(std::shared_ptr<const Snapshot> snapshot);

 private:
  std::shared_ptr<const Layout> layout_;  // of the last snapshot
  std::shared_ptr<const Layout> escaped_;
};

}  // namespace persia::agent
