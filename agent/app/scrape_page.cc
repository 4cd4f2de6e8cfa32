#include "app/scrape_page.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/foreign_memory.h"
#include "base/timing.h"

namespace persia::agent {
namespace {

// A scrape takes the newest collection if it is not older.
constexpr std::chrono::milliseconds kMaxAge{1000};

// The layout with another's families, whose values follow its own. Its identity is the one that has all labels of
// `self`.
Layout Joined(const Layout& collected, const Layout& process, const Identity& self) {
  Layout layout = collected;
  const auto is_self = [&](const Identity& identity) {
    return std::includes(identity.labels.begin(), identity.labels.end(), self.labels.begin(), self.labels.end());
  };
  const auto found = std::find_if(layout.identities.begin(), layout.identities.end(), is_self);
  const auto identity = static_cast<uint32_t>(found - layout.identities.begin());
  if (found == layout.identities.end()) layout.identities.push_back(self);
  for (FamilyLayout family : process.families) {
    for (SeriesLayout& series : family.series) {
      series.identity = identity;
      series.first_value += collected.value_count;
    }
    const auto place = std::ranges::lower_bound(layout.families, family.name, {}, &FamilyLayout::name);
    if (place != layout.families.end() && place->name == family.name)
      std::move(family.series.begin(), family.series.end(), std::back_inserter(place->series));
    else
      layout.families.insert(place, std::move(family));
  }
  layout.value_count += process.value_count;
  return layout;
}

}  // namespace

ScrapePage::ScrapePage(Collector& collector, OwnMetrics& own, Identity self)
    : collector_(collector), own_(own), self_(std::move(self)), process_(self_) {}

std::shared_ptr<const Snapshot> ScrapePage::WithSelf(const Snapshot& collected) {
  const std::shared_ptr<const Snapshot> process = process_.Collect();
  if (collected.layout != collected_layout_) {
    layout_ = std::make_shared<const Layout>(Joined(*collected.layout, *process->layout, self_));
    collected_layout_ = collected.layout;
  }
  auto all = std::make_shared<Snapshot>();
  all->layout = layout_;
  all->collected_at = collected.collected_at;
  all->values.reserve(layout_->value_count);
  all->values = collected.values;
  all->values.insert(all->values.end(), process->values.begin(), process->values.end());
  return all;
}

ScrapePage::Body ScrapePage::BodyIn(ScrapeFormat format, bool gzip) {
  const std::shared_ptr<const Snapshot> collected = collector_.NoOlderThan(kMaxAge);
  if (collected == nullptr) return {};
  const MutexLock lock(mutex_);
  const auto body = [&](auto& rendered) PERSIA_REQUIRES(mutex_) {
    std::shared_ptr<const std::string> plain = BodyOf(collected, rendered);
    if (plain == nullptr) return Body{};
    std::shared_ptr<const std::string> gzipped = gzip ? Gzipped(rendered) : nullptr;
    return gzipped != nullptr ? Body{.text = std::move(gzipped), .is_gzip = true} : Body{.text = std::move(plain)};
  };
  switch (format) {
    case ScrapeFormat::kProtobuf:
      return body(protobuf_);
    case ScrapeFormat::kOpenMetrics:
      return body(open_metrics_);
    default:
      return body(text_);
  }
}

template <class Renderer>
std::shared_ptr<const std::string> ScrapePage::Gzipped(Rendered<Renderer>& rendered) {
  if (rendered.gzipped == nullptr) {
    const std::shared_ptr<std::string> gzipped = rendered.gzip_buffers.Take();
    if (!compressor_) compressor_.emplace();
    if (compressor_->Compress(*rendered.body, *gzipped).ok()) rendered.gzipped = gzipped;
    made_.push_back(gzipped);
  }
  return rendered.gzipped;
}

template <class Renderer>
std::shared_ptr<const std::string> ScrapePage::BodyOf(const std::shared_ptr<const Snapshot>& collected,
                                                      Rendered<Renderer>& rendered) {
  if (collected == rendered.collected) return rendered.body;
  const std::shared_ptr<const Snapshot> all = WithSelf(*collected);
  const auto began = std::chrono::steady_clock::now();
  rendered.collected = nullptr;
  rendered.body = nullptr;  // its memory is reused unless a scrape is still being sent from it
  rendered.gzipped = nullptr;
  if (TooManyAreSent()) return nullptr;
  const std::shared_ptr<std::string> body = rendered.buffers.Take();
  rendered.renderer.Render(*all, *body);
  own_.RenderDone(Seconds(std::chrono::steady_clock::now() - began));
  rendered.collected = collected;
  rendered.body = body;
  made_.push_back(body);
  return body;
}

// A slow client may receive a body for a minute, while each collection makes another one. Usual scrapes need a few.
bool ScrapePage::TooManyAreSent() {
  constexpr size_t kUsual = 4;
  size_t bytes = 0;
  size_t largest = 0;
  std::erase_if(made_, [&](const std::weak_ptr<const std::string>& made) {
    const auto body = made.lock();
    bytes += body == nullptr ? 0 : body->capacity();
    largest = std::max(largest, body == nullptr ? 0 : body->capacity());
    return body == nullptr;
  });
  return bytes > std::max(kUsual * largest, ForeignShare::Limit() / 4);
}

}  // namespace persia::agent
