// The payload of agent.groups, version 1 (numbers and texts as in state/bytes.h):
//
//   payload := agent_id:String  aside:String  count:U32  group{count}
//   group   := gateway:String  job:String  labels:U32  (name:String value:String){labels}
//
// `aside` is the run in which the agent stands aside, or empty.
#include "sink/group_ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <string_view>
#include <utility>

#include "state/bytes.h"

namespace persia::agent {
namespace {

constexpr size_t kIdDigits = 16;

std::string MakeAgentId() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (size_t i = 0; i < kIdDigits; ++i) id += kHex[random() & 15];
  return id;
}

StateFile::Options FileOptions(const GroupLedger::Options& options) {
  return {.directory_fd = options.directory_fd,
          .directory = options.directory,
          .name = options.name,
          .magic = {'P', 'R', 'S', 'M', 'G', 'R', 'P', '\n'},
          .version = 1,
          .mode = options.mode};
}

}  // namespace

GroupLedger::GroupLedger(Options options) : options_(std::move(options)), file_(FileOptions(options_)) {
  std::string set_aside;
  const auto payload = file_.Read(set_aside);
  if (!payload.ok()) {
    options_.log.warn("groups.ledger", payload.error() + "; groups of an earlier agent stay on the gateway");
  } else if (payload.value() && !Parse(*payload.value())) {
    set_aside = file_.SetAside("its content is not a list of groups");
    agent_id_.clear();
    groups_.clear();
  }
  if (!set_aside.empty()) {
    options_.log.warn("groups.ledger", set_aside + "; groups of an earlier agent stay on the gateway");
  }
  if (agent_id_.empty()) {
    agent_id_ = MakeAgentId();
    unsaved_ = true;
  }
}

bool GroupLedger::Parse(const std::string& payload) {
  ByteReader reader(payload);
  agent_id_ = reader.String();
  const std::string_view aside = reader.String();
  stands_aside_ = !aside.empty() && aside == options_.run_id;
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
  const std::lock_guard lock(mutex_);
  return groups_;
}

void GroupLedger::StandAside() {
  const std::lock_guard lock(mutex_);
  stands_aside_ = true;
  Save();
}

void GroupLedger::Add(const std::vector<Group>& groups) {
  const std::lock_guard lock(mutex_);
  const size_t before = groups_.size();
  groups_.insert(groups.begin(), groups.end());
  if (groups_.size() != before || unsaved_) Save();
}

void GroupLedger::Remove(const std::vector<Group>& groups) {
  const std::lock_guard lock(mutex_);
  const size_t before = groups_.size();
  for (const Group& group : groups) groups_.erase(group);
  if (groups_.size() != before || unsaved_) Save();
}

void GroupLedger::Flush() {
  const std::lock_guard lock(mutex_);
  // Somebody may have cleared the directory.
  if (unsaved_ || faccessat(options_.directory_fd, options_.name.c_str(), F_OK, 0) != 0) Save();
}

void GroupLedger::Save() {
  ByteWriter writer;
  writer.String(agent_id_);
  writer.String(stands_aside_ ? options_.run_id : "");
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
  const Status written = file_.Write(std::move(writer).Take());
  if (!written.ok() && !std::exchange(save_failed_, true)) {
    options_.log.warn("groups.ledger",
                      written.error() + "; an agent that starts here later will not end the groups of this one");
  }
  if (written.ok()) save_failed_ = false;
  unsaved_ = !written.ok();
}

}  // namespace persia::agent
