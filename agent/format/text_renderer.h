// Renders a snapshot for a scrape: all identities in one text of exposition format 0.0.4, each series with its identity's
// labels, `job` first.
//
// The plan of the bytes (exposition_plan.h) is kept while the snapshot's layout is the same object.
//
// Thread safety: none.
//
//   TextRenderer renderer;
//   renderer.Render(*snapshot, body);
#pragma once

#include <memory>
#include <string>

#include "format/exposition_plan.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

class TextRenderer {
 public:
  // Replaces `out` by the text of all series. Pass the same string again: its memory is reused.
  void Render(const Snapshot& snapshot, std::string& out);

 private:
  std::shared_ptr<const Layout> layout_;  // of plan_
  ExpositionPlan<TextFormat> plan_;
};

}  // namespace persia::agent
