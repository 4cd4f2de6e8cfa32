// Prometheus' text exposition format 0.0.4, for a scrape and for a push.
//
// What depends on the layout alone, `name{labels} ` of each line and the HELP and TYPE lines, is made once and kept while the
// layout is the same object; a render then copies prefixes and prints numbers, without an allocation per series.
//
// Thread safety: none; a scrape and a push that may run at the same time have a renderer each.
//
//   TextRenderer for_scrape(TextRenderer::Mode::kScrape);
//   for_scrape.Render(*snapshot, body);
//
//   TextRenderer for_push(TextRenderer::Mode::kPush);
//   for (size_t i = 0; i < snapshot->layout->identities.size(); ++i) for_push.RenderIdentity(*snapshot, i, body);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/text_plan.h"
#include "model/snapshot.h"

namespace persia::agent {

class TextRenderer {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Mode {
    kScrape,  // all identities in one text; each series carries its identity's labels, `job` first
    kPush,    // a text per identity, without the identity's labels: they stand in the URL
  };

  explicit TextRenderer(Mode mode) : mode_(mode) {}

  // Replaces `out` by the text of all series. Give the same string again: it keeps its memory.
  // REQUIRES: Mode::kScrape.
  void Render(const Snapshot& snapshot, std::string& out);

  // Replaces `out` by the text of the series of Layout::identities[identity], but for the families of `leave_out`; empty if
  // none is shown. `families`, if not null, is told what each family in the text came to. REQUIRES: Mode::kPush.
  void RenderIdentity(const Snapshot& snapshot, size_t identity, std::string& out, const FamilyNames& leave_out = {},
                      std::vector<FamilyText>* families = nullptr);

 private:
  void Prepare(const Snapshot& snapshot);

  const Mode mode_;
  std::shared_ptr<const Layout> layout_;  // of which plans_ were made
  std::vector<TextPlan> plans_;           // one for a scrape, one per identity for a push
};

}  // namespace persia::agent
