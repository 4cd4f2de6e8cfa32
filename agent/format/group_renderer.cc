#include "format/group_renderer.h"

#include <string_view>

#include "base/text.h"

namespace persia::agent {
namespace {

bool NeedsBase64(std::string_view value) {
  return value.empty() || value == "." || value == ".." || value.find('/') != std::string_view::npos;
}

// A path has no empty segments: an empty value is "=".
void AppendSegments(std::string& path, std::string_view label, std::string_view value) {
  path += '/';
  path += label;
  path += NeedsBase64(value) ? "@base64/" + (value.empty() ? "=" : Base64UrlEncode(value)) : '/' + PercentEncode(value);
}

}  // namespace

std::string GroupingKeyPath(const Identity& identity) {
  std::string path = "/metrics";
  AppendSegments(path, "job", identity.job);
  for (const auto& [label, value] : identity.labels) AppendSegments(path, label, value);
  return path;
}

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
