// What is pushed of one identity: the body of a request for its group, without the identity's labels, which stand in the URL.
//
// What depends on the layout alone is made once and kept while the layout is the same object.
//
// Thread safety: none.
//
//   GroupRenderer renderer(GroupFormat::kProtobuf);
//   for (size_t i = 0; i < snapshot->layout->identities.size(); ++i) renderer.Render(*snapshot, i, body);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "format/exposition_plan.h"
#include "format/group_format.h"
#include "format/metric_messages.h"
#include "format/text_lines.h"
#include "model/snapshot.h"

namespace persia::agent {

class GroupRenderer {
 public:
  explicit GroupRenderer(GroupFormat format = GroupFormat::kText) { set_format(format); }

  [[nodiscard]] GroupFormat format() const {
    return std::holds_alternative<Plans<TextLines>>(plans_) ? GroupFormat::kText : GroupFormat::kProtobuf;
  }
  void set_format(GroupFormat format);

  // Replaces `out` by the series of Layout::identities[identity], but for the families of `leave_out`; empty if none is shown.
  // `families`, if not null, is told what each family that is in it came to. Give the same string again: it keeps its memory.
  void Render(const Snapshot& snapshot, size_t identity, std::string& out, const FamilyNames& leave_out = {},
              std::vector<FamilySize>* families = nullptr);

 private:
  template <class Format>
  using Plans = std::vector<ExpositionPlan<Format>>;  // one per identity

  std::shared_ptr<const Layout> layout_;  // of which plans_ were made
  std::variant<Plans<TextLines>, Plans<MetricMessages>> plans_;
};

}  // namespace persia::agent
