// The only record of agent.groups (as in files/bytes.h): the agent's id (String), labelled_run (String), and the list of
// groups: gateway, job (String), list of labels: name, value (String).
//
// `labelled_run` is the id of the run in which the agent adds the label `agent` to its groups, or empty.
#include "push/group_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

constexpr size_t kIdDigits = 16;

std::string MakeAgentId() {
  std::random_device random;
  std::string bytes;
  for (size_t i = 0; i < kIdDigits / 2; ++i) bytes += static_cast<char>(random());
  return HexEncode(bytes);
}

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'G', 'R', 'P', '\n'}, .version = 1};

}  // namespace

template <class Archive>
void Fields(Archive& archive, GroupLedger::Group& group) {
  archive(group.gateway, group.identity.job, group.identity.labels);
}

GroupLedger::GroupLedger(Options options) : options_(std::move(options)) {
  const MutexLock lock(mutex_);
  OpenFile();
  std::string broken;
  const auto content = ReadJournal(*file_, kFormat, /*look=*/false, broken);
  if (!content.ok()) {
    LogWarning("groups.ledger", content.error() + "; groups of an earlier agent stay on the gateway");
  } else if (const auto payload = content.value().only(); payload && !Parse(*payload)) {
    static_cast<void>(file_->SetAside("its content is not a list of groups", broken));
    agent_id_.clear();
    groups_.clear();
  }
  if (!broken.empty()) LogWarning("groups.ledger", broken + "; groups of an earlier agent stay on the gateway");
  if (agent_id_.empty()) {
    agent_id_ = MakeAgentId();
    unsaved_ = true;
  }
}

bool GroupLedger::Parse(std::string_view payload) {
  std::string labelled_run;
  const bool is_good = Decode(payload, agent_id_, labelled_run, groups_);
  adds_agent_label_ = !labelled_run.empty() && labelled_run == options_.run_id;
  return is_good && agent_id_.size() == kIdDigits;
}

std::set<GroupLedger::Group> GroupLedger::groups() const {
  const MutexLock lock(mutex_);
  return groups_;
}

void GroupLedger::AddAgentLabel() {
  const MutexLock lock(mutex_);
  if (adds_agent_label_) return;
  adds_agent_label_ = true;
  std::erase_if(groups_, [&](const Group& group) { return WithAgentLabel(group.identity, agent_id_) != group.identity; });
  Save();
}

void GroupLedger::Add(const std::vector<Group>& groups) {
  const MutexLock lock(mutex_);
  const size_t before = groups_.size();
  groups_.insert(groups.begin(), groups.end());
  if (groups_.size() != before || unsaved_) Save();
}

void GroupLedger::Remove(const std::vector<Group>& groups) {
  const MutexLock lock(mutex_);
  const size_t before = groups_.size();
  for (const Group& group : groups) groups_.erase(group);
  if (groups_.size() != before || unsaved_) Save();
}

void GroupLedger::Flush() {
  const MutexLock lock(mutex_);
  if (writer_->stats().waiting_bytes > 0) return;  // a write hangs: the file does not exist yet
  const bool gone = writer_->WantsCheckpoint();
  if (gone) OpenFile();  // the directory may be another one
  unsaved_ || gone ? Save() : writer_->Confirm();
}

void GroupLedger::OpenFile() {
  file_ = std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = options_.directory_fd,
                                                                     .directory = options_.directory,
                                                                     .name = options_.name,
                                                                     .mode = options_.mode,
                                                                     .max_bytes = kMaxListBytes});
  writer_ = std::make_unique<JournalWriter>(JournalWriter::Options{.file = file_, .format = kFormat});
  writer_->Start();
}

void GroupLedger::Save() {
  const std::string labelled_run = adds_agent_label_ ? options_.run_id : "";
  unsaved_ = !writer_->AwaitWritten(writer_->ReplaceOnly(Encode(agent_id_, labelled_run, groups_)), options_.patience);
  if (unsaved_ && !save_failure_logged_) {
    LogWarning("groups.ledger", writer_->stats().error.value_or(file_->path() + " is not on disk after " +
                                                                std::to_string(options_.patience.count()) + " ms") +
                                    "; an agent that starts here later will not delete the groups of this one");
  }
  save_failure_logged_ = unsaved_;
}

}  // namespace persia::agent
