#include "format/text_renderer.h"

namespace persia::agent {

void TextRenderer::Render(const Snapshot& snapshot, std::string& out) {
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

}  // namespace persia::agent
