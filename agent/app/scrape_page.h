// The text of /metrics: a collection, and the metrics of the agent's own process.
//
// A collection is rendered once, however many scrapes ask for it. Thread safety: any method, from any thread.
#pragma once

#include <memory>
#include <string>

#include "app/collector.h"
#include "base/mutex.h"
#include "format/text_buffer_pool.h"
#include "format/text_renderer.h"
#include "model/snapshot.h"
#include "own/own_metrics.h"
#include "own/self_process.h"

namespace persia::agent {

class ScrapePage {
 public:
  // `self`: the identity of the agent's own metrics, without the labels of the settings. The collector and `own` outlive it.
  ScrapePage(Collector& collector, OwnMetrics& own, Identity self);

  // Null if the collector has stopped before its first collection.
  std::shared_ptr<const std::string> Text();

 private:
  std::shared_ptr<const Snapshot> WithSelf(const Snapshot& collected) PERSIA_REQUIRES(mutex_);

  Collector& collector_;
  OwnMetrics& own_;
  const Identity self_;

  Mutex mutex_;
  SelfProcess process_ PERSIA_GUARDED_BY(mutex_);
  TextRenderer renderer_ PERSIA_GUARDED_BY(mutex_);
  TextBufferPool text_buffers_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> rendered_ PERSIA_GUARDED_BY(mutex_);  // the collection that text_ shows
  std::shared_ptr<const std::string> text_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<const Layout> collected_layout_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<const Layout> layout_ PERSIA_GUARDED_BY(mutex_);  // of collected_layout_ with the process's families
};

}  // namespace persia::agent
