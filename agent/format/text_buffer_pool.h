// Keeps the memory of one large text for the next one. Other threads may still read the last text when the next one is made.
// Fresh memory for 100,000 series would cost more than printing their values, since the kernel clears each page.
//
//   TextBufferPool pool;
//   std::shared_ptr<std::string> text = pool.Take();  // with any content: replace it
//
// Thread safety: any method, from any thread. A text may be released on any thread, also after its pool.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace persia::agent {

class TextBufferPool {
 public:
  [[nodiscard]] std::shared_ptr<std::string> Take() {
    std::unique_ptr<std::string> text;
    {
      const MutexLock lock(kept_->mutex);
      text = std::move(kept_->text);
    }
    if (text == nullptr) text = std::make_unique<std::string>();
    return {text.release(), [kept = kept_](std::string* released) {
              std::unique_ptr<std::string> text(released);  // if it is not kept, it is freed after the lock
              const MutexLock lock(kept->mutex);
              if (kept->text == nullptr && text->capacity() / kMaxCapacityRatio <= text->size()) kept->text = std::move(text);
            }};
  }

 private:
  static constexpr size_t kMaxCapacityRatio = 4;  // the memory of a text that has shrunk further is freed

  struct Kept {
    Mutex mutex;
    std::unique_ptr<std::string> text PERSIA_GUARDED_BY(mutex);
  };

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace persia::agent
