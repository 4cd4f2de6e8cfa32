#include "job/state_name.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "files/durable_file.h"
#include "lib/src/segment_format/job_directory.h"

namespace persia::agent {
namespace {

constexpr char kReplica[] = ".rep_";
constexpr std::string_view kNote = ".host";
constexpr size_t kMaxNoteBytes = 16;

DurableFile NoteOf(const JobDirectory& state, const std::string& job, int own) {
  return {.directory_fd = state.fd(),
          .directory = state.path(),
          .name = StatePrefix(job, own) + std::string(kNote),
          .max_bytes = kMaxNoteBytes};
}

std::optional<int> ReadNote(const DurableFile& note) {
  std::string broken;
  const auto text = ReadDurable(note, broken);
  int replica = 0;
  const bool is_number = text.ok() && text.value() && ParseNumber(*text.value(), replica) && replica >= 0;
  return is_number ? std::optional(replica) : std::nullopt;
}

}  // namespace

std::string StatePrefix(const std::string& job, int replica) {
  return metrics::EncodeJobName(job) + kReplica + std::to_string(replica);
}

std::optional<int> NotedReplica(const JobDirectory& state, const std::string& job, int own) {
  const auto files = ReadNote(NoteOf(state, job, own));
  const bool is_there = files && faccessat(state.fd(), (StatePrefix(job, *files) + ".state").c_str(), F_OK, 0) == 0;
  return is_there ? files : std::nullopt;
}

void NoteReplica(const JobDirectory& state, const std::string& job, int own, int files) {
  const DurableFile note = NoteOf(state, job, own);
  const auto noted = ReadNote(note);
  if (own == files) {
    if (noted) static_cast<void>(RemoveDurable(note));
  } else if (noted != files) {
    static_cast<void>(ReplaceDurable(note, state.group() ? 0660 : 0600, std::to_string(files), {}));
  }
}

void RemoveNotes(const JobDirectory& state, const std::string& job, int files) {
  const int fd = openat(state.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), &closedir);
  const std::string prefix = metrics::EncodeJobName(job) + kReplica;
  std::vector<int> noted;
  while (const dirent* entry = listing == nullptr ? nullptr : readdir(listing.get())) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(kNote)) continue;
    name.remove_prefix(prefix.size());
    // Else it is of another job, whose name begins like this one's.
    if (int own = 0; ParseNumber(name.substr(0, name.find('.')), own) && name.substr(name.find('.')) == kNote)
      noted.push_back(own);
  }
  for (const int own : noted) {
    const DurableFile note = NoteOf(state, job, own);
    if (ReadNote(note) == files) unlinkat(note.directory_fd, note.name.c_str(), 0);
  }
}

}  // namespace persia::agent
