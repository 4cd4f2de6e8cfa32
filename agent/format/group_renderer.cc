#include "format/group_renderer.h"

namespace persia::agent {

void GroupRenderer::set_format(ExpositionFormat format) {
  layout_ = nullptr;
  if (format == ExpositionFormat::kText)
    plans_.emplace<Plans<TextFormat>>();
  else
    plans_.emplace<Plans<MetricMessages>>();
}

void GroupRenderer::Render(const Snapshot& snapshot, size_t identity, std::string& out, const FamilyNames& leave_out,
                           std::vector<FamilySize>* families) {
  std::visit(
      [&](auto& plans) {
        if (snapshot.layout != layout_) {
          layout_ = snapshot.layout;
          plans.clear();
          plans.resize(layout_->identities.size());
          for (const FamilyLayout& family : layout_->families)
            for (const SeriesLayout& series : family.series) plans[series.identity].Add(family, series, nullptr);
          for (auto& plan : plans) plan.Finish();
        }
        plans[identity].Write(snapshot.values, out, leave_out, families);
      },
      plans_);
}

}  // namespace persia::agent
