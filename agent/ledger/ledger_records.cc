// The part of Ledger that reads the state, and writes the whole state.
#include "ledger/ledger_records.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/ledger.h"
#include "ledger/retired_codec.h"
#include "ledger/segment_codec.h"
#include "ledger/state_v1.h"

namespace persia::agent {
namespace {

constexpr std::chrono::seconds kLargeRetry(60);
constexpr char kMissing[] = "; the counts of processes that ended before now are missing";

std::string RunOf(const JournalContent& content) {
  // Each version begins with the run's id.
  return content.records.empty() ? "" : std::string(ByteReader(content.records.front().payload).String());
}

std::string WithText(const std::string& text) {
  ByteWriter writer;
  writer.String(text);
  return std::move(writer).Take();
}

}  // namespace

Result<std::string> RunOfState(JournalFile& file) {
  return ForeignShare().Charge(file.path(), [&]() -> Result<std::string> {
    std::string problem;
    const auto content = ReadJournal(file, kStateFormat, /*look=*/true, problem);
    if (!content.ok()) return Error{content.error()};
    return RunOf(content.value());
  });
}

void Ledger::Load(const CollectTime& now) {
  if (now.steady < load_after_) return;
  loaded_ = true;
  if (options_.file == nullptr) return;
  std::string problem;
  bool fits = false;
  const auto load = [&] {
    const Status loaded = Read(now, problem);
    fits = true;
    return loaded;
  };
  if (const Status read = memory_.Charge(options_.file->path(), load); !read.ok()) {
    Discard();
    // Of another run it is removed in any case.
    loaded_ = !fits && options_.new_run && !options_.read_only && options_.file->Remove().ok();
    if (!loaded_) diagnostics_.Report("state", read.error() + kMissing + " until it can be read");
    if (!fits) load_after_ = now.steady + kLargeRetry;  // it takes a second
  }
  if (!Retires()) return;
  StartWriter();
  if (!problem.empty()) MarkUnsaved();  // no other file has the records read from a damaged one
}

Status Ledger::Read(const CollectTime& now, std::string& problem) {
  const auto content = ReadJournal(*options_.file, kStateFormat, /*look=*/options_.read_only, problem);
  if (!content.ok()) return Error{content.error()};
  if (!problem.empty()) diagnostics_.Report("state", problem + kMissing);
  const bool exists = !content.value().records.empty();
  const bool of_run = exists && !options_.new_run && RunOf(content.value()) == options_.run_id;
  if (exists && !of_run && !options_.read_only) {
    static_cast<void>(options_.file->Remove());  // else the first save replaces it
  }
  if (of_run && !ReadRecords(content.value(), now)) {
    std::string message;
    if (options_.read_only) {
      message = options_.file->path() + " cannot be used: a record is malformed";
    } else if (!options_.file->SetAside("a record is malformed", message)) {
      return Error{message};
    }
    diagnostics_.Report("state", message + kMissing);
  }
  return Done{};
}

// A damaged record may have been applied in part.
void Ledger::Discard() {
  processes_ = RetiredProcesses(processes_.options());
  living_.clear();
  folded_.clear();
  unknown_.clear();
  health_.clear();
  goodput_.clear();
}

bool Ledger::ReadRecords(const JournalContent& content, const CollectTime& now) {
  for (const JournalRecord& record : content.records) {
    if (!ReadRecord(record, now)) {
      Discard();
      return false;
    }
  }
  for (auto& [id, process] : living_) {
    process.orphan = true;
  }
  return true;
}

bool Ledger::ReadRecord(const JournalRecord& record, const CollectTime& now) {
  ByteReader reader(record.payload);
  switch (static_cast<StateRecord>(record.tag)) {
    case StateRecord::kVersion1:
      return UseVersion1(record.payload, now);
    case StateRecord::kRun:
      break;
    case StateRecord::kProcesses:
      processes_.RestoreCount(reader.U64());
      return reader.done();
    case StateRecord::kInstance:
      ReadInstance(reader, processes_, now);
      return reader.done();
    case StateRecord::kGroup:
      return ReadGroup(reader, kStateFormat.version, processes_, now).empty() && reader.done();
    case StateRecord::kFolded:
      folded_.emplace(reader.String(), 0);
      return reader.done();
    case StateRecord::kOrdinal: {
      Process& process = living_[std::string(reader.String())];
      process.ordinal = reader.U32();
      process.instance.reset();
      return reader.done();
    }
    case StateRecord::kOrdinalOf: {
      const auto process = living_.find(std::string(reader.String()));
      const std::string role(reader.String());
      const auto replica = static_cast<int32_t>(reader.U32());
      if (process != living_.end()) process->second.instance.emplace(role, replica);
      return reader.done();
    }
    case StateRecord::kValues: {
      const std::string id(reader.String());
      Process& process = living_[id];
      process.has_values = true;
      return !id.empty() && process.values.Apply(record.payload);
    }
    case StateRecord::kRemoved: {
      const auto process = living_.find(std::string(reader.String()));
      const std::vector<uint32_t> removed = ReadNumbers(reader);
      if (process != living_.end()) process->second.values.ApplyRemoved(removed);
      return reader.done();
    }
    case StateRecord::kGroupRemoved: {
      RetiredGroup& group = processes_.FindOrAddGroup(ReadIdentity(reader));
      for (const uint32_t series : ReadNumbers(reader)) {
        if (series < group.series_count()) group.SetRemoved(series, true);
      }
      return reader.done();
    }
    case StateRecord::kFold:
      return ReadFold(reader, now);
    case StateRecord::kExit: {
      const std::string id(reader.String());
      living_[id].exit = reader.String();
      return reader.done();
    }
    case StateRecord::kExits:
      ReadExits(reader, processes_);
      return reader.done();
    case StateRecord::kSpans:
      ReadSpans(reader, processes_);
      return reader.done();
    case StateRecord::kHealth:
      health_ = reader.String();
      return reader.done();
    case StateRecord::kGoodput:
      goodput_ = reader.String();
      return reader.done();
    case StateRecord::kSeen: {
      const bool same_boot = reader.String() == options_.boot_id;
      const uint64_t ns = reader.U64();
      seen_ = new_seen_ = same_boot ? ns : 0;
      return reader.done();
    }
    case StateRecord::kForget:
      folded_.erase(std::string(reader.String()));
      return reader.done();
    case StateRecord::kForgetInstance: {
      const std::string role(reader.String());
      processes_.ForgetInstance({role, static_cast<int32_t>(reader.U32())});
      return reader.done();
    }
    default:
      unknown_.emplace_back(record.tag, record.payload);
  }
  return true;
}

void Ledger::WritePlace(const std::string& id, const Process& process,
                        const std::function<void(StateRecord record, const std::string& payload)>& add) {
  if (!process.ordinal) return;
  ByteWriter ordinal;
  ordinal.String(id);
  ordinal.U32(*process.ordinal);
  add(StateRecord::kOrdinal, std::move(ordinal).Take());
  if (!process.instance) return;
  ByteWriter of;
  of.String(id);
  of.String(process.instance->first);
  of.U32(static_cast<uint32_t>(process.instance->second));
  add(StateRecord::kOrdinalOf, std::move(of).Take());
}

void Ledger::WriteSeen(ByteWriter& record) const {
  record.String(options_.boot_id);
  record.U64(new_seen_);
}

bool Ledger::ReadFold(ByteReader& reader, const CollectTime& now) {
  const std::string id(reader.String());
  const auto wall = ReadTime(reader);
  if (replayed_.tick == 0 || wall != replayed_.wall) {
    replayed_ = {replayed_.tick + 1, SteadyTime(wall, now), wall};
  }
  RetiredProcesses::FoldOutcome outcome{.group = reader.U8() != 0};
  outcome.left_out = ReadNumbers(reader);
  const auto process = living_.extract(id);
  if (!reader.done() || !process || !process.mapped().has_values) return false;
  const SavedProcess& values = process.mapped().values;
  processes_.RepeatFold(values.Input(), values.process(), replayed_, outcome, process.mapped().exit);
  folded_.emplace(id, 0);
  return true;
}

bool Ledger::UseVersion1(std::string_view payload, const CollectTime& now) {
  auto state = ReadStateOfVersion1(payload, processes_.options(), now);
  if (!state.ok()) return false;
  processes_ = std::move(state.value().processes);
  for (const std::string& id : state.value().folded) {
    folded_.emplace(id, 0);
  }
  for (const auto& [id, ordinal] : state.value().ordinals) {
    living_[id].ordinal = ordinal;
  }
  for (auto& [id, values] : state.value().living) {
    Process& process = living_[id];
    process.values = std::move(values);
    process.has_values = true;
  }
  return true;
}

std::string Ledger::Checkpoint(const CollectTime& now) const {
  std::string records;
  const auto add = [&](StateRecord record, std::string_view payload) {
    AddRecord(records, static_cast<uint16_t>(record), payload);
  };
  add(StateRecord::kRun, WithText(options_.run_id));
  // Before the sums, so that a checkpoint that is cut off never has sums without the ids of the segments in them.
  for (const auto& [id, write] : folded_) {
    add(StateRecord::kFolded, WithText(id));
  }
  ByteWriter count;
  count.U64(processes_.processes());
  add(StateRecord::kProcesses, std::move(count).Take());
  for (const auto& [key, instance] : processes_.instances()) {
    ByteWriter writer;
    WriteInstance(key, instance, writer);
    add(StateRecord::kInstance, std::move(writer).Take());
    ByteWriter exits;
    WriteExits(key, instance, exits);
    add(StateRecord::kExits, std::move(exits).Take());
    ByteWriter spans;
    WriteSpans(key, instance, spans);
    add(StateRecord::kSpans, std::move(spans).Take());
  }
  for (const RetiredGroup& group : processes_.groups()) {
    ByteWriter writer;
    WriteGroup(group, now, writer);
    add(StateRecord::kGroup, std::move(writer).Take());
    if (const std::string removed = RemovedOf(group, now); !removed.empty()) add(StateRecord::kGroupRemoved, removed);
  }
  for (const auto& [id, process] : living_) {
    WritePlace(id, process, add);
    if (process.has_values) add(StateRecord::kValues, process.values.Whole());
    if (const std::string removed = process.values.Removed(); !removed.empty()) add(StateRecord::kRemoved, removed);
  }
  if (!health_.empty()) add(StateRecord::kHealth, WithText(health_));
  if (!goodput_.empty()) add(StateRecord::kGoodput, WithText(goodput_));
  if (new_seen_ != 0) {
    ByteWriter seen;
    WriteSeen(seen);
    add(StateRecord::kSeen, std::move(seen).Take());
  }
  for (const auto& [tag, payload] : unknown_) {
    AddRecord(records, tag, payload);
  }
  return records;
}

}  // namespace persia::agent
