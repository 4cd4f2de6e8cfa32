// Renders the series of one identity as the body of a push. The identity's labels are left out: the URL has them.
//
// The plan of the bytes (exposition_plan.h) is kept while the snapshot's layout is the same object.
//
// Thread safety: none.
//
//   GroupRenderer renderer(ExpositionFormat::kProtobuf);
//   for (size_t i = 0; i < snapshot->layout->identities.size(); ++i) renderer.Render(*snapshot, i, body);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "format/exposition_format.h"
#include "format/exposition_plan.h"
#include "format/metric_messages.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

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
