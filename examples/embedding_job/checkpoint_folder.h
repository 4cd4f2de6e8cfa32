// Where one process keeps its part of the checkpoints: <folder>/<checkpoint>/<its file>.
//
// The newest two checkpoints of this run are kept, so that a crash while one is written leaves one. Thread safety: one thread
// at a time.
#pragma once

#include <deque>
#include <filesystem>
#include <string>

namespace embedding_job {

class CheckpointFolder {
 public:
  // An empty `folder` means a fresh one, which is removed with all that is in it at the end. Throws JobError.
  CheckpointFolder(const std::string& folder, std::string file_name);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // The file to write for a checkpoint; its folder exists. Throws JobError.
  std::filesystem::path Begin(const std::string& checkpoint);
  // The file has been written: an older one may go.
  void Finish(const std::string& checkpoint);

 private:
  const bool temporary_;
  const std::filesystem::path folder_;
  const std::string file_name_;
  std::deque<std::string> kept_;
};

// A new folder below the system's one for temporary files. Throws JobError.
std::filesystem::path MakeTemporaryFolder();

}  // namespace embedding_job
