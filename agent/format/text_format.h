// Prometheus' text exposition format 0.0.4, for a scrape: all identities in one text, each series with its identity's labels,
// `job` first.
//
// What depends on the layout alone is made once and kept while the layout is the same object.
//
// Thread safety: none.
//
//   TextRenderer renderer;
//   renderer.Render(*snapshot, body);
#pragma once

#include <memory>
#include <string>

#include "format/exposition_plan.h"
#include "format/text_lines.h"
#include "model/snapshot.h"

namespace persia::agent {

class TextRenderer {
 public:
  // Replaces `out` by the text of all series. Give the same string again: it keeps its memory.
  void Render(const Snapshot& snapshot, std::string& out);

 private:
  std::shared_ptr<const Layout> layout_;  // of which plan_ was made
  ExpositionPlan<TextLines> plan_;
};

}  // namespace persia::agent
