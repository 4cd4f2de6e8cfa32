#include "ledger/retired_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace persia::agent {

RetiredStore::RetiredStore(Options options, Diagnostics& diagnostics)
    : options_(std::move(options)),
      diagnostics_(diagnostics),
      state_{.run_id = options_.run_id, .processes = RetiredProcesses(options_.processes)} {
  if (options_.file) {
    file_.emplace(*options_.file);
  }
}

void RetiredStore::Load(const CollectTime& now) {
  loaded_ = true;
  if (!file_) return;
  constexpr char kMissing[] = "; the counts of processes that ended before now are missing";
  std::string problem;
  const auto payload = options_.read_only ? file_->Look(problem) : file_->Read(problem);
  if (!payload.ok()) {
    diagnostics_.Report("state", payload.error() + kMissing + " until it can be read");
    loaded_ = false;
    return;
  }
  if (!problem.empty()) {
    diagnostics_.Report("state", problem + kMissing);
  }
  if (!payload.value()) return;
  if (options_.new_run || RunOfRetired(*payload.value()) != options_.run_id) {
    if (Retires()) {
      static_cast<void>(file_->Remove());  // else the first save replaces it
    }
    return;
  }
  auto state = DecodeRetired(*payload.value(), options_.processes, now);
  if (state.ok()) {
    state_ = std::move(state).value();
  } else if (Retires()) {
    diagnostics_.Report("state", file_->SetAside(state.error()) + kMissing);
  }
}

std::string RetiredStore::EncodeLiving(const Measurements& living, const LastProcess& process, const CollectTime& now) {
  RetiredState state{.processes = RetiredProcesses({})};
  state.processes.Fold(living, process, now);
  return EncodeRetired(state, now);
}

void RetiredStore::SetLiving(std::map<std::string, std::string> living) {
  if (living != state_.living) {
    state_.living = std::move(living);
    saved_ = false;
  }
}

void RetiredStore::FoldLost(const std::function<bool(const std::string& id)>& segment_exists, const CollectTime& now) {
  for (const auto& [id, payload] : std::exchange(state_.living, {})) {
    if (segment_exists(id) || IsFolded(id)) continue;
    const auto lost = DecodeRetired(payload, options_.processes, now);
    if (!lost.ok() || lost.value().processes.groups().size() != 1 || lost.value().processes.instances().size() != 1) {
      diagnostics_.Report("state", "the state of " + id + " in " + file_->path() + " is malformed; its counts are missing");
      continue;
    }
    Measurements input = lost.value().processes.groups().front().Input();
    const auto& last = lost.value().processes.instances().begin()->second.last_processes;
    input.id = id;
    input.ordinal = last.empty() ? 0 : last.begin()->first;
    Fold(input, last.empty() ? LastProcess() : last.begin()->second, now);
    state_.folded.erase(id);  // its file cannot appear again
  }
}

void RetiredStore::Fold(const Measurements& ended, const LastProcess& process, const CollectTime& now) {
  state_.processes.Fold(ended, process, now);
  state_.folded.emplace(ended.id);
  saved_ = false;
  Step("folded");
}

std::optional<uint32_t> RetiredStore::SavedOrdinal(const std::string& id) const {
  const auto found = state_.ordinals.find(id);
  return found == state_.ordinals.end() ? std::nullopt : std::optional(found->second);
}

void RetiredStore::AddFoldedFile(const std::string& id, const std::string& name, const FileId& file) {
  folded_files_.insert_or_assign(name, FoldedFile{id, file});
}

bool RetiredStore::IsFoldedFile(const std::string& name, const FileId& file) const {
  const auto found = folded_files_.find(name);
  return found != folded_files_.end() && found->second.file.SameInode(file);
}

void RetiredStore::ForgetMissingSegments() {
  std::set<std::string> kept;
  for (const auto& [name, file] : folded_files_) {
    kept.insert(file.id);
  }
  state_.folded = std::move(kept);
}

void RetiredStore::SaveAndRemove(const std::string& directory, const CollectTime& now) {
  if (!Retires()) return;
  if (!saved_) {
    state_.processes.Compact();
    const Status written = file_->Write(EncodeRetired(state_, now));
    saved_ = written.ok();
    if (!written.ok()) {
      if (failure_ != written.error()) {
        failure_ = written.error();
        diagnostics_.Forget(*failure_);
        diagnostics_.Report("state",
                            *failure_ + "; the files of ended processes stay until it can be written: free some space");
      }
      return;
    }
    failure_.reset();
  }
  if (folded_files_.empty()) return;
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  std::erase_if(folded_files_, [&](const auto& entry) {
    const auto& [name, folded] = entry;
    struct stat info {};
    const bool exists = fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists && errno != ENOENT) {
      return false;  // it may exist
    }
    const bool ours = exists && folded.file.SameInode({info.st_dev, info.st_ino, info.st_ctim});
    if (ours && unlinkat(fd, name.c_str(), 0) != 0) return false;
    state_.folded.erase(folded.id);
    Step("removed");
    return true;
  });
  close(fd);
}

}  // namespace persia::agent
