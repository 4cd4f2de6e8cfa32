// The settings in use, which a reload replaces.
//
// Thread safety: any method, from any thread.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "config/options.h"

namespace persia::agent {

class LiveOptions {
 public:
  explicit LiveOptions(AgentOptions options) : options_(std::make_shared<const AgentOptions>(std::move(options))) {}

  // The same object until they are replaced.
  [[nodiscard]] std::shared_ptr<const AgentOptions> Get() const {
    const MutexLock lock(mutex_);
    return options_;
  }
  void Set(AgentOptions options) {
    auto fresh = std::make_shared<const AgentOptions>(std::move(options));
    const MutexLock lock(mutex_);
    options_ = std::move(fresh);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const AgentOptions> options_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
