#include "source/retired_store.h"

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

void RetiredStore::Load(const Moment& now) {
  loaded_ = true;
  if (!file_) {
    return;
  }
  constexpr char kMissing[] = "; what processes counted that ended before now is missing";
  std::string trouble;
  const auto payload = options_.look_only ? file_->Look(trouble) : file_->Read(trouble);
  if (!payload.ok()) {
    diagnostics_.Report("state", payload.error() + kMissing + " until it can be read");
    loaded_ = false;
    return;
  }
  if (!trouble.empty()) {
    diagnostics_.Report("state", trouble + kMissing);
  }
  if (!payload.value()) {
    return;
  }
  if (options_.begins || RunOfRetired(*payload.value()) != options_.run_id) {
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

std::string RetiredStore::Alone(const MergeInput& living, const RetiredPlace& about, const Moment& now) {
  RetiredState alone{.processes = RetiredProcesses({})};
  alone.processes.Fold(living, about, now);
  return EncodeRetired(alone, now);
}

void RetiredStore::SetLiving(std::map<std::string, std::string> living) {
  if (living != state_.living) {
    state_.living = std::move(living);
    saved_ = false;
  }
}

void RetiredStore::FoldLost(const std::function<bool(const std::string& id)>& is_there, const Moment& now) {
  for (const auto& [id, alone] : std::exchange(state_.living, {})) {
    if (is_there(id) || Holds(id)) {
      continue;
    }
    const auto lost = DecodeRetired(alone, options_.processes, now);
    if (!lost.ok() || lost.value().processes.groups().size() != 1 || lost.value().processes.instances().size() != 1) {
      diagnostics_.Report("state",
                          "the state of " + id + " in " + file_->path() + " cannot be used; what it counted is missing");
      continue;
    }
    MergeInput input = lost.value().processes.groups().front().Input();
    const auto& places = lost.value().processes.instances().begin()->second.places;
    input.id = id;
    input.ordinal = places.empty() ? 0 : places.begin()->first;
    Fold(input, places.empty() ? RetiredPlace() : places.begin()->second, now);
    state_.folded.erase(id);  // it has no file that could be found again
  }
}

void RetiredStore::Fold(const MergeInput& ended, const RetiredPlace& about, const Moment& now) {
  state_.processes.Fold(ended, about, now);
  state_.folded.emplace(ended.id);
  saved_ = false;
  Step("folded");
}

std::optional<uint32_t> RetiredStore::PlaceOf(const std::string& id) const {
  const auto found = state_.places.find(id);
  return found == state_.places.end() ? std::nullopt : std::optional(found->second);
}

void RetiredStore::Leaves(const std::string& id, const std::string& name, const FileId& file) {
  left_.insert_or_assign(name, Left{id, file});
}

bool RetiredStore::IsLeft(const std::string& name, const FileId& file) const {
  const auto found = left_.find(name);
  return found != left_.end() && found->second.file.SameInode(file);
}

void RetiredStore::ForgetOthers() {
  std::set<std::string> kept;
  for (const auto& [name, left] : left_) {
    kept.insert(left.id);
  }
  state_.folded = std::move(kept);
}

void RetiredStore::SaveAndRemove(const std::string& directory, const Moment& now) {
  if (!Retires()) {
    return;
  }
  if (!saved_) {
    state_.processes.Compact();
    const Status written = file_->Write(EncodeRetired(state_, now));
    saved_ = written.ok();
    if (!written.ok()) {
      if (failure_ != written.error()) {
        failure_ = written.error();
        diagnostics_.Forget(*failure_);
        diagnostics_.Report("state", *failure_ + "; the files of ended processes stay until it can be written: make room");
      }
      return;
    }
    failure_.reset();
  }
  if (left_.empty()) {
    return;
  }
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  std::erase_if(left_, [&](const auto& entry) {
    const auto& [name, left] = entry;
    struct stat info {};
    const bool there = fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) {
      return false;  // it may be there
    }
    const bool ours = there && left.file.SameInode({info.st_dev, info.st_ino, info.st_ctim});
    if (ours && unlinkat(fd, name.c_str(), 0) != 0) {
      return false;
    }
    state_.folded.erase(left.id);
    Step("removed");
    return true;
  });
  close(fd);
}

}  // namespace persia::agent
