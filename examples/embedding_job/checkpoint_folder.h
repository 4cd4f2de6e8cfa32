// Where one process keeps its part of the checkpoints: <folder>/<checkpoint>/<its file>.
//
// The newest two checkpoints of this run are kept, so that a crash during a write leaves one. Thread safety: one thread at a
// time.
#pragma once

#include <deque>
#include <filesystem>
#include <string>

namespace embedding_job {

class CheckpointFolder {
 public:
  // If `folder` is empty, a temporary one is used and removed at the end. Throws JobError.
  CheckpointFolder(const std::string& folder, std::string file_name);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // The file to write for a checkpoint; its folder exists. Throws JobError.
  std::filesystem::path Begin(const std::string& checkpoint);
  // The file has been written. Deletes the oldest one, if there are more than two.
  void Finish(const std::string& checkpoint);

 private:
  const bool temporary_;
  const std::filesystem::path folder_;
  const std::string file_name_;
  std::deque<std::string> kept_;
};

// Creates a folder in the system's folder for temporary files. Throws JobError.
std::filesystem::path MakeTemporaryFolder();

}  // namespace embedding_job
