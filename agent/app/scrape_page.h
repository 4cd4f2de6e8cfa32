// The body of /metrics: a collection, and the metrics of the agent's own process.
//
// A collection is rendered at most once in each format, and compressed at most once. Thread safety: any method, from any
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/collector.h"
#include "base/mutex.h"
#include "format/scrape_format.h"
#include "format/scrape_renderer.h"
#include "format/text_buffer_pool.h"
#include "model/snapshot.h"
#include "net/gzip.h"
#include "own/own_metrics.h"
#include "own/self_process.h"

namespace persia::agent {

class ScrapePage {
 public:
  // `self`: the identity of the agent's own metrics, without the labels of the settings. The collector and `own` outlive it.
  ScrapePage(Collector& collector, OwnMetrics& own, Identity self);

  struct Body {
    // Null if the collector has stopped before its first collection, or if slow clients still receive too many former bodies.
    std::shared_ptr<const std::string> text;
    bool is_gzip = false;
  };
  // `gzip`: compressed, unless there is no memory for it.
  Body BodyIn(ScrapeFormat format, bool gzip);

 private:
  // The last body in one format.
  template <class Renderer>
  struct Rendered {
    Renderer renderer;
    TextBufferPool buffers;
    std::shared_ptr<const Snapshot> collected;
    std::shared_ptr<const std::string> body;
    TextBufferPool gzip_buffers;
    std::shared_ptr<const std::string> gzipped;  // of `body`; null: not needed yet
  };

  template <class Renderer>
  std::shared_ptr<const std::string> BodyOf(const std::shared_ptr<const Snapshot>& collected, Rendered<Renderer>& rendered)
      PERSIA_REQUIRES(mutex_);
  template <class Renderer>
  std::shared_ptr<const std::string> Gzipped(Rendered<Renderer>& rendered) PERSIA_REQUIRES(mutex_);
  bool TooManyAreSent() PERSIA_REQUIRES(mutex_);
  std::shared_ptr<const Snapshot> WithSelf(const Snapshot& collected) PERSIA_REQUIRES(mutex_);

  Collector& collector_;
  OwnMetrics& own_;
  const Identity self_;

  Mutex mutex_;
  SelfProcess process_ PERSIA_GUARDED_BY(mutex_);
  Rendered<TextRenderer> text_ PERSIA_GUARDED_BY(mutex_);
  Rendered<OpenMetricsRenderer> open_metrics_ PERSIA_GUARDED_BY(mutex_);
  Rendered<ProtobufRenderer> protobuf_ PERSIA_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const std::string>> made_ PERSIA_GUARDED_BY(mutex_);  // some are still being sent
  std::optional<GzipCompressor> compressor_ PERSIA_GUARDED_BY(mutex_);            // from the first request for gzip on
  std::shared_ptr<const Layout> collected_layout_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<const Layout> layout_ PERSIA_GUARDED_BY(mutex_);  // of collected_layout_ with the process's families
};

}  // namespace persia::agent
