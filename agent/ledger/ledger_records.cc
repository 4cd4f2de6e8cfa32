// The part of Ledger that reads the state, and writes the whole state.
#include "ledger/ledger_records.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/ledger.h"
#include "ledger/retired_codec.h"
#include "ledger/segment_codec.h"

namespace persia::agent {
namespace {

constexpr std::chrono::seconds kLargeRetry(60);
constexpr char kMissing[] = "; the counts of processes that ended before now are missing";

std::string RunOf(const JournalContent& content) {
  return content.records.empty() ? "" : std::string(ByteReader(content.records.front().payload).String());
}

}  // namespace

Result<std::string> RunOfState(JournalFile& file) {
  return ForeignShare().Charge(
      file.path(),
      [&]() -> Result<std::string> {
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
  StartWriter(kReadWrite, /*is_written=*/problem.empty());  // no other file has the records read from a damaged one
}

Status Ledger::Read(const CollectTime& now, std::string& problem) {
  const auto content = ReadJournal(*options_.file, kStateFormat, /*look=*/options_.read_only, problem);
  if (!content.ok()) return Error{content.error()};
  if (!problem.empty()) diagnostics_.Report("state", problem + kMissing);
  const bool exists = !content.value().records.empty();
  const bool of_run = exists && !options_.new_run && RunOf(content.value()) == options_.run_id;
  if (exists && !of_run && !options_.read_only) static_cast<void>(options_.file->Remove());  // else the first save replaces it
  if (of_run && !ReadRecords(content.value(), now)) {
    std::string message;
    if (options_.read_only)
      message = options_.file->path() + " cannot be used: a record is malformed";
    else if (!options_.file->SetAside("a record is malformed", message))
      return Error{message};
    diagnostics_.Report("state", message + kMissing);
  }
  return Done{};
}

// A damaged record may have been applied in part.
void Ledger::Discard() {
  processes_ = RetiredProcesses(processes_.options());
  living_.clear();
  folded_.clear();
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
  for (auto& [id, process] : living_) process.orphan = true;
  return true;
}

bool Ledger::ReadRecord(const JournalRecord& record, const CollectTime& now) {
  const std::string_view payload = record.payload;
  std::string id;
  switch (static_cast<StateRecord>(record.tag)) {
    case StateRecord::kRun: {
      uint64_t folded = 0;
      const bool is_good = Decode(payload, id, folded);
      processes_.RestoreCount(folded);
      return is_good;
    }
    case StateRecord::kInstance:
      return DecodeInstance(payload, processes_, now);
    case StateRecord::kGroup:
      return DecodeGroup(payload, processes_, now);
    case StateRecord::kFolded:
      if (!Decode(payload, id)) return false;
      folded_.emplace(id, kReadWrite);
      return true;
    case StateRecord::kOrdinal: {
      ProcessPlace place;
      const bool is_good = Decode(payload, id, place);
      living_[id].place = std::move(place);
      return is_good;
    }
    case StateRecord::kValues: {
      id = ByteReader(payload).String();
      Unfolded& process = living_[id];
      process.has_values = true;
      return !id.empty() && process.values.Apply(payload);
    }
    case StateRecord::kFold:
      return ReadFold(payload, now);
    case StateRecord::kForget:
      if (!Decode(payload, id)) return false;
      folded_.erase(id);
      return true;
    case StateRecord::kForgetInstance: {
      RankId instance;
      const bool is_good = Decode(payload, instance);
      processes_.ForgetInstance(instance);
      return is_good;
    }
    case StateRecord::kHealth:
      return Decode(payload, health_);
    case StateRecord::kGoodput:
      return Decode(payload, goodput_);
    case StateRecord::kSeen: {
      const bool is_good = Decode(payload, id, new_seen_);
      seen_ = new_seen_ = id == options_.boot_id ? new_seen_ : 0;
      return is_good;
    }
  }
  return false;
}

bool Ledger::ReadFold(std::string_view payload, const CollectTime& now) {
  std::string id;
  std::chrono::system_clock::time_point wall;
  std::string exit;
  RetiredProcesses::FoldOutcome outcome;
  if (!Decode(payload, id, wall, exit, outcome.group, outcome.left_out)) return false;
  if (replayed_.tick == 0 || wall != replayed_.wall) replayed_ = {replayed_.tick + 1, SteadyTime(wall, now), wall};
  const auto process = living_.extract(id);
  if (!process || !process.mapped().has_values) return false;
  const SavedProcess& values = process.mapped().values;
  processes_.RepeatFold(values.Input(), values.process(), replayed_, outcome, exit);
  folded_.emplace(id, kReadWrite);
  return true;
}

std::string Ledger::Checkpoint(const CollectTime& now) const {
  std::string records;
  const auto add = [&](StateRecord record, std::string_view payload) {
    AddRecord(records, static_cast<uint16_t>(record), payload);
  };
  add(StateRecord::kRun, Encode(options_.run_id, processes_.processes()));
  // Before the sums, so that a checkpoint that is cut off never has sums without the ids of the segments in them.
  for (const auto& [id, write] : folded_) add(StateRecord::kFolded, Encode(id));
  for (const auto& [key, instance] : processes_.instances()) add(StateRecord::kInstance, EncodeInstance(key, instance));
  for (const RetiredGroup& group : processes_.groups()) add(StateRecord::kGroup, EncodeGroup(group, now));
  for (const auto& [id, process] : living_) {
    if (process.place) add(StateRecord::kOrdinal, Encode(id, *process.place));
    if (process.has_values) add(StateRecord::kValues, process.values.Whole());
  }
  if (!health_.empty()) add(StateRecord::kHealth, Encode(health_));
  if (!goodput_.empty()) add(StateRecord::kGoodput, Encode(goodput_));
  if (new_seen_ != 0) add(StateRecord::kSeen, Encode(options_.boot_id, new_seen_));
  return records;
}

}  // namespace persia::agent
