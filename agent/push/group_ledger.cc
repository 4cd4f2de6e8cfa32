// The record of agent.groups (numbers and texts as in files/bytes.h):
//
//   payload := agent_id:String  labelled_run:String  count:U32  group{count}
//   group   := gateway:String  job:String  labels:U32  (name:String value:String){labels}
//
// `labelled_run` is the id of the run in which the agent adds the label `agent` to its groups, or empty.
#include "push/group_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string_view>
#include <utility>

#include "base/encoding.h"
#include "base/log.h"
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

// A journal of checkpoints alone: one record with all groups.
constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'G', 'R', 'P', '\n'}, .version = 2};
constexpr uint16_t kGroupsTag = 1;

}  // namespace

GroupLedger::GroupLedger(Options options) : options_(std::move(options)) {
  const MutexLock lock(mutex_);
  OpenFile();
  std::string broken;
  const auto content = ReadJournal(*file_, kFormat, /*look=*/false, broken);
  if (!content.ok()) {
    LogWarning("groups.ledger", content.error() + "; groups of an earlier agent stay on the gateway");
  } else if (!content.value().records.empty() && !Parse(content.value().records.back().payload)) {
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
  ByteReader reader(payload);
  agent_id_ = reader.String();
  const std::string_view labelled_run = reader.String();
  adds_agent_label_ = !labelled_run.empty() && labelled_run == options_.run_id;
  for (uint32_t left = reader.Count(12); left > 0; --left) {
    Group group;
    group.gateway = reader.String();
    group.identity.job = reader.String();
    for (uint32_t labels = reader.Count(8); labels > 0; --labels) {
      std::string name(reader.String());
      group.identity.labels.emplace_back(std::move(name), reader.String());
    }
    groups_.insert(std::move(group));
  }
  return reader.done() && agent_id_.size() == kIdDigits;
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
  ByteWriter writer;
  writer.String(agent_id_);
  writer.String(adds_agent_label_ ? options_.run_id : "");
  writer.U32(static_cast<uint32_t>(groups_.size()));
  for (const Group& group : groups_) {
    writer.String(group.gateway);
    writer.String(group.identity.job);
    writer.U32(static_cast<uint32_t>(group.identity.labels.size()));
    for (const auto& [name, value] : group.identity.labels) {
      writer.String(name);
      writer.String(value);
    }
  }
  std::string record;
  AddRecord(record, kGroupsTag, std::move(writer).Take());
  unsaved_ = !writer_->AwaitWritten(writer_->Replace(std::move(record)), options_.patience);
  if (unsaved_ && !save_failure_logged_) {
    LogWarning("groups.ledger", writer_->stats().error.value_or(file_->path() + " is not on disk after " +
                                                                std::to_string(options_.patience.count()) + " ms") +
                                    "; an agent that starts here later will not delete the groups of this one");
  }
  save_failure_logged_ = unsaved_;
}

}  // namespace persia::agent
