// The pushes of an identity's group: format, body and address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/exposition_plan.h"
#include "format/metric_messages.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

// The formats of a push; scrape_format.h has those of a scrape. All readers understand the text exposition format 0.0.4.
// PushGateways also read delimited protobuf, which is shorter, takes less processor time on both sides, and has created
// timestamps.
enum class ExpositionFormat : uint8_t { kText, kProtobuf };

// "text" or "protobuf".
[[nodiscard]] constexpr std::string_view ToString(ExpositionFormat format) {
  return format == ExpositionFormat::kText ? "text" : "protobuf";
}

[[nodiscard]] constexpr std::string_view ContentType(ExpositionFormat format) {
  return format == ExpositionFormat::kText
             ? "text/plain; version=0.0.4; charset=utf-8"
             : "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
}

// The address of an identity's group on a PushGateway.
//
// Thread safety: a pure function.

// "/metrics/job/<job>/<label>/<value>...", labels in the identity's order. Values are percent-encoded. A value that a path
// segment cannot hold (empty, with a slash, or "." and "..", which servers and proxies resolve) is written
// `<label>@base64/<URL-safe base64>`.
// REQUIRES: `job` is not empty: the gateway refuses an empty one.
std::string GroupingKeyPath(const Identity& identity);

// Renders the series of one identity as the body of a push. The identity's labels are left out: the URL has them.
//
// The plan of the bytes (exposition_plan.h) is kept while the snapshot's layout is the same object.
//
// Thread safety: none.
//
//   GroupRenderer renderer(ExpositionFormat::kProtobuf);
//   for (size_t i = 0; i < snapshot->layout->identities.size(); ++i) renderer.Render(*snapshot, i, body);
class GroupRenderer {
 public:
  explicit GroupRenderer(ExpositionFormat format = ExpositionFormat::kText) { set_format(format); }

  [[nodiscard]] ExpositionFormat format() const {
    return std::holds_alternative<Plans<TextFormat>>(plans_) ? ExpositionFormat::kText : ExpositionFormat::kProtobuf;
  }
  void set_format(ExpositionFormat format);

  // Replaces `out` by the series of Layout::identities[identity], without the families of `leave_out`; empty if there are none.
  // `families`, if not null, receives the size of each family. Pass the same string again: its memory is reused.
  void Render(const Snapshot& snapshot, size_t identity, std::string& out, const FamilyNames& leave_out = {},
              std::vector<FamilySize>* families = nullptr);

 private:
  template <class Format>
  using Plans = std::vector<ExpositionPlan<Format>>;  // one per identity

  std::shared_ptr<const Layout> layout_;  // of plans_
  std::variant<Plans<TextFormat>, Plans<MetricMessages>> plans_;
};

}  // namespace persia::agent
