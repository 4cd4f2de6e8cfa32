#include "format/text_format.h"

namespace persia::agent {

void TextRenderer::Render(const Snapshot& snapshot, std::string& out) {
  Prepare(snapshot);
  plans_.front().Print(snapshot.values, out);
}

void TextRenderer::RenderIdentity(const Snapshot& snapshot, size_t identity, std::string& out, const FamilyNames& leave_out,
                                  std::vector<FamilyText>* families) {
  Prepare(snapshot);
  plans_[identity].Print(snapshot.values, out, leave_out, families);
}

void TextRenderer::Prepare(const Snapshot& snapshot) {
  if (snapshot.layout == layout_) return;
  layout_ = snapshot.layout;
  plans_.clear();
  plans_.resize(mode_ == Mode::kScrape ? 1 : layout_->identities.size());
  for (const FamilyLayout& family : layout_->families) {
    for (const SeriesLayout& series : family.series) {
      if (mode_ == Mode::kScrape) {
        plans_.front().Add(family, series, &layout_->identities[series.identity]);
      } else {
        plans_[series.identity].Add(family, series, nullptr);
      }
    }
  }
  for (TextPlan& plan : plans_) plan.Finish();
}

}  // namespace persia::agent
