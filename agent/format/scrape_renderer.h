// Renders a snapshot for a scrape: all identities in one body, each series with its identity's labels, `job` first.
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
#include "format/metric_messages.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

template <class Format>
class ScrapeRenderer {
 public:
  // Replaces `out` by all series. Pass the same string again: its memory is reused.
  void Render(const Snapshot& snapshot, std::string& out) {
    if (snapshot.layout != layout_) {
      layout_ = snapshot.layout;
      plan_ = {};
      for (const FamilyLayout& family : layout_->families) {
        for (const SeriesLayout& series : family.series) plan_.Add(family, series, &layout_->identities[series.identity]);
      }
      plan_.Finish();
    }
    plan_.Write(snapshot.values, out);
  }

 private:
  std::shared_ptr<const Layout> layout_;  // of plan_
  ExpositionPlan<Format> plan_;
};

using TextRenderer = ScrapeRenderer<TextFormat>;
using ProtobufRenderer = ScrapeRenderer<MetricMessages>;

}  // namespace persia::agent
