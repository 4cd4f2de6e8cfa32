#include "files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace persia::agent {

DiskJournalFile::DiskJournalFile(Options options)
    : mode_(options.mode),
      after_step_(std::move(options.after_step)),
      directory_(fcntl(options.directory_fd, F_DUPFD_CLOEXEC, 0)),
      directory_error_(directory_.valid() ? 0 : errno),
      file_{directory_.get(), std::move(options.directory), std::move(options.name), options.max_bytes} {}

Error DiskJournalFile::NoDirectory() const { return SystemError("cannot use " + path(), directory_error_); }

Result<std::optional<std::string>> DiskJournalFile::Read(std::string& broken) {
  broken.clear();
  if (!directory_.valid()) return NoDirectory();
  return ReadDurable(file_, broken);
}

Status DiskJournalFile::Replace(std::string_view bytes) {
  if (!directory_.valid()) return NoDirectory();
  auto written = ReplaceDurable(file_, mode_, bytes, after_step_);
  if (!written.ok()) return Error{written.error()};
  append_to_ = std::move(written).value();
  return Done{};
}

Status DiskJournalFile::Append(std::string_view bytes) {
  struct stat written {};
  struct stat named {};
  if (fstat(append_to_.get(), &written) != 0 ||
      fstatat(file_.directory_fd, file_.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0)
    return SystemError("cannot write " + path());
  // Bytes written to a file without a name would be lost.
  if (written.st_ino != named.st_ino || written.st_dev != named.st_dev)
    return Error{"cannot write " + path() + ": another file has taken its place"};
  if (bytes.empty()) return Done{};
  if (static_cast<size_t>(written.st_size) + bytes.size() > kMaxStateBytes)
    return Error{"cannot write " + path() + ": it would be larger than the maximum of 1 GiB"};
  if (!WriteAll(append_to_.get(), bytes)) return SystemError("cannot write " + path());
  if (after_step_) after_step_("appended");
  if (fdatasync(append_to_.get()) != 0) return SystemError("cannot write " + path());
  if (after_step_) after_step_("append on disk");
  return Done{};
}

bool DiskJournalFile::SetAside(std::string_view why, std::string& message) { return SetAsideDurable(file_, why, message); }

Status DiskJournalFile::Remove() {
  if (!directory_.valid()) return NoDirectory();
  return RemoveDurable(file_);
}

}  // namespace persia::agent
