// A large text that is made again and again, and that others may still be reading when the next is made: its memory is used
// again once nobody has it, unless the text has become much smaller. Fresh memory for 100,000 series costs more than their
// digits, since the kernel clears each page.
//
//   SpareText spare;
//   std::shared_ptr<std::string> text = spare.Take();  // any content, for the caller to replace
//
// Thread safety: any method, and the end of any text, on any thread; a text may outlive its SpareText.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace persia::agent {

class SpareText {
 public:
  [[nodiscard]] std::shared_ptr<std::string> Take() {
    std::unique_ptr<std::string> text;
    {
      const std::lock_guard lock(kept_->mutex);
      text = std::move(kept_->text);
    }
    if (text == nullptr) {
      text = std::make_unique<std::string>();
    }
    return {text.release(), [kept = kept_](std::string* done) {
              std::unique_ptr<std::string> mine(done);  // freed after the lock, if it is not kept
              const std::lock_guard lock(kept->mutex);
              if (kept->text == nullptr && mine->capacity() / kMostRoom <= mine->size()) {
                kept->text = std::move(mine);
              }
            }};
  }

 private:
  static constexpr size_t kMostRoom = 4;  // times a text's size

  struct Kept {
    std::mutex mutex;
    std::unique_ptr<std::string> text;  // guarded by mutex
  };

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace persia::agent
