// A process with its segment in a file, which it keeps locked while it lives. It counts my_app_batches.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/owned_fd.h"

namespace persia::agent::model {

class FileWorker {
 public:
  // `number`: no other process of the directory has it. REQUIRES: the run has a random id.
  FileWorker(const std::string& directory, uint64_t number, const std::string& run_id, uint32_t replica);

  void SetCount(uint64_t count) const;
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  uint64_t number_;
  uint64_t count_at_;
  OwnedFd segment_;
};

}  // namespace persia::agent::model
