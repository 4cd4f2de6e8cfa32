#include "checkpoint_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "job_error.h"

namespace embedding_job {
namespace {

namespace fs = std::filesystem;
constexpr size_t kKept = 2;

}  // namespace

CheckpointFolder::CheckpointFolder(const std::string& folder, std::string file_name)
    : temporary_(folder.empty()),
      folder_(temporary_ ? MakeTemporaryFolder() : fs::path(folder)),
      file_name_(std::move(file_name)) {}

CheckpointFolder::~CheckpointFolder() {
  if (temporary_) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
}

fs::path CheckpointFolder::Begin(const std::string& checkpoint) {
  std::error_code error;
  fs::create_directories(folder_ / checkpoint, error);
  if (error) {
    throw JobError("cannot make the folder \"" + (folder_ / checkpoint).string() + "\": " + error.message() +
                   "; name another one by --checkpoint-dir");
  }
  return folder_ / checkpoint / file_name_;
}

void CheckpointFolder::Finish(const std::string& checkpoint) {
  kept_.push_back(checkpoint);
  if (kept_.size() > kKept) {
    const fs::path oldest = folder_ / kept_.front();
    kept_.pop_front();
    std::error_code ignored;
    fs::remove(oldest / file_name_, ignored);
    // Succeeds for the last process that uses it.
    fs::remove(oldest, ignored);
  }
}

fs::path MakeTemporaryFolder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "embedding_job_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw JobError("cannot make a temporary folder \"" + name + "\": " + std::strerror(errno) +
                   "; name a folder by --checkpoint-dir");
  }
  return name;
}

}  // namespace embedding_job
