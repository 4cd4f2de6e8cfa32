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
#include "format/open_metrics_format.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

template <class Format>
class ScrapeRenderer {
 public:
  // Replaces `out` by all series. Pass the same string again: its memory is reused.
  void Render(const Snapshot& snapshot, std::string& out) {
    if (snapshot.layout != layout_) {
      layout_ = shown_ = snapshot.layout;
      if constexpr (requires { Format::Adapt(shown_); }) shown_ = Format::Adapt(shown_);
      plan_ = {};
      for (const FamilyLayout& family : shown_->families)
        for (const SeriesLayout& series : family.series) plan_.Add(family, series, &shown_->identities[series.identity]);
      plan_.Finish();
    }
    plan_.Write(snapshot.values, out);
    if constexpr (requires { Format::kEnd; }) out += Format::kEnd;
  }

 private:
  std::shared_ptr<const Layout> layout_;  // of the last snapshot
  std::shared_ptr<const Layout> shown_;   // layout_ as this format shows it; of plan_
  ExpositionPlan<Format> plan_;
};

using TextRenderer = ScrapeRenderer<TextFormat>;
using OpenMetricsRenderer = ScrapeRenderer<OpenMetricsFormat>;
using ProtobufRenderer = ScrapeRenderer<MetricMessages>;

}  // namespace persia::agent
