#include "ledger/ledger.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "files/bytes.h"
#include "ledger/ledger_records.h"

namespace persia::agent {

Ledger::Ledger(Options options, Diagnostics& diagnostics)
    : options_(std::move(options)), diagnostics_(diagnostics), processes_(options_.processes) {}

void Ledger::StartWriter(uint64_t last, bool is_written) {
  writer_ = std::make_unique<JournalWriter>(JournalWriter::Options{.file = options_.file,
                                                                   .format = kStateFormat,
                                                                   .threaded = options_.threaded,
                                                                   .min_growth = options_.min_growth,
                                                                   .last = last,
                                                                   .written = is_written ? last : 0,
                                                                   .now = options_.now});
  writer_->Start();
}

void Ledger::Change(StateRecord record, std::string_view payload) {
  if (Retires()) AddRecord(batch_, static_cast<uint16_t>(record), payload);
}

void Ledger::Note(const Measurements& living, const LastProcess& process) {
  const std::string id(living.id);
  Unfolded& noted = living_[id];
  noted.orphan = false;
  const ProcessPlace place = living.place();
  if (NotePlace(id, noted, place)) {
    noted.place = place;
    Change(StateRecord::kOrdinal, Encode(id, place));
  }
  if (!options_.saves_living) return;
  noted.has_values = true;
  RecordValues(noted.values, living, process);
}

void Ledger::RecordValues(SavedProcess& values, const Measurements& now, const LastProcess& process) {
  if (const std::string changes = values.Update(now, process); !changes.empty()) Change(StateRecord::kValues, changes);
}

std::optional<ProcessPlace> Ledger::SavedPlace(const std::string& id) const {
  const auto found = living_.find(id);
  return found == living_.end() ? std::nullopt : found->second.place;
}

std::vector<std::string> Ledger::Orphans() const {
  std::vector<std::string> ids;
  for (const auto& [id, process] : living_)
    if (process.orphan) ids.push_back(id);
  return ids;
}

std::optional<Ledger::Orphan> Ledger::OrphanOf(const std::string& id) const {
  const auto found = living_.find(id);
  if (found == living_.end() || !found->second.orphan || !found->second.has_values) return std::nullopt;
  return Orphan{found->second.values.Input(), found->second.values.process()};
}

void Ledger::Adopt(const std::string& id) {
  if (const auto found = living_.find(id); found != living_.end()) found->second.orphan = false;
}

void Ledger::Fold(const Measurements& ended, const LastProcess& process, const CollectTime& now,
                  std::optional<std::string_view> exit) {
  const std::string id(ended.id);
  Unfolded& last = living_[id];
  last.has_values = true;
  RecordValues(last.values, ended, process);
  NotePlace(id, last, ended.place());
  FoldAs(id, now, exit.value_or(kUnknownEnd), exit.has_value());
}

void Ledger::SetExit(const ProcessPlace& place, const ProcessId& process, std::string_view exit) {
  const auto end = std::ranges::find_if(
      new_ends_, [&](const NewEnd& other) { return !other.told && other.place == place && other.process == process; });
  if (end == new_ends_.end()) return;
  end->told = true;
  if (exit == end->exit) return;
  const RetiredInstance* const of = processes_.SetExit(place, process, exit);
  if (of == nullptr) return;
  RecordForgotten();
  Change(StateRecord::kInstance, EncodeInstance(place.rank, *of));
  end->exit = exit;
  end->write = NextWrite();
}

std::map<std::string, uint64_t> Ledger::Exits(const RankId& instance) const {
  const auto found = processes_.instances().find(instance);
  if (found == processes_.instances().end()) return {};
  std::map<std::string, uint64_t> exits = found->second.exits;
  for (const NewEnd& end : new_ends_) {
    if (end.place.rank != instance || (end.told && IsWritten(end.write))) continue;
    const auto of = exits.find(end.exit);  // none: the instance was forgotten, and came again
    if (of != exits.end() && --of->second == 0) exits.erase(of);
  }
  return exits;
}

std::map<ProcessPlace, uint64_t> Ledger::UnsavedPlaces() const {
  std::map<ProcessPlace, uint64_t> unsaved;
  for (const auto& [id, unsaved_place] : new_places_)
    if (!IsWritten(unsaved_place.write)) ++unsaved[unsaved_place.place];
  return unsaved;
}

bool Ledger::NotePlace(const std::string& id, const Unfolded& process, const ProcessPlace& place) {
  if (process.place == place) return false;
  if (Retires()) new_places_.insert_or_assign(id, NewPlace{place, NextWrite()});
  return true;
}

void Ledger::SetHealth(std::string_view health) {
  if (!Retires() || health == health_) return;
  health_ = health;
  health_write_ = NextWrite();
  Change(StateRecord::kHealth, Encode(health_));
}

void Ledger::SetGoodput(std::string_view goodput) {
  if (!Retires() || goodput == goodput_) return;
  goodput_ = goodput;
  goodput_write_ = NextWrite();
  std::string record;
  AddRecord(record, static_cast<uint16_t>(StateRecord::kGoodput), Encode(goodput_));
  // Before the folds: if the batch is torn, the accounts have processes that are read again, which changes nothing, and lack
  // none.
  batch_.insert(0, record);
}

void Ledger::SetSeen(uint64_t ns) {
  static_cast<void>(Seen());
  new_seen_ = ns;
  new_seen_write_ = NextWrite();
  Change(StateRecord::kSeen, Encode(options_.boot_id, new_seen_));
}

uint64_t Ledger::Seen() {
  if (!WillRetire() || IsWritten(new_seen_write_)) seen_ = std::max(seen_, new_seen_);
  return seen_;
}

void Ledger::FoldOrphan(const std::string& id, const CollectTime& now) { FoldAs(id, now, kUnknownEnd, true); }

void Ledger::FoldAs(const std::string& id, const CollectTime& now, std::string_view exit, bool told) {
  const auto process = living_.extract(id);
  if (!process.mapped().has_values) return;  // only its place was saved
  RecordForgotten();                         // before this fold, which may be of the same instance
  const SavedProcess& values = process.mapped().values;
  const Measurements input = values.Input();
  const auto [group, left_out] = processes_.Fold(input, values.process(), now, exit);
  Change(StateRecord::kFold, Encode(id, now.wall, exit, group, left_out));
  folded_.emplace(id, NextWrite());
  new_ends_.push_back(
      {.place = input.place(), .process = values.process().id, .exit = std::string(exit), .told = told, .write = NextWrite()});
  CountMemory();
}

void Ledger::CountMemory() {
  constexpr uint64_t kCopies = 3;  // in the batch, in the queue of the writer, in what it writes
  // So that there is room for segments, also if the limit was lowered.
  sums_.Set(std::min(processes_.bytes(), ForeignShare::Limit() / 2));
  changes_.Set(kCopies * (batch_.size() + (writer_ == nullptr ? 0 : writer_->stats().waiting_bytes)));
}

void Ledger::RecordForgotten() {
  for (const RankId& instance : processes_.TakeForgotten()) Change(StateRecord::kForgetInstance, Encode(instance));
}

std::vector<std::string> Ledger::FoldedIds() const {
  std::vector<std::string> ids;
  for (const auto& [id, write] : folded_) ids.push_back(id);
  return ids;
}

bool Ledger::IsDurable(const std::string& id) const {
  const auto found = folded_.find(id);
  return found != folded_.end() && IsWritten(found->second);
}

void Ledger::Forget(const std::string& id) {
  if (folded_.erase(id) != 0) Change(StateRecord::kForget, Encode(id));
}

void Ledger::Save(const CollectTime& now) {
  if (!Retires()) return;
  RecordForgotten();
  if (writer_->Blocked()) {
    batch_.clear();  // the checkpoint that follows the failed write has it
  } else if (writer_->WantsCheckpoint()) {
    if (!batch_.empty() || writer_->written() < writer_->last()) {
      batch_.clear();
      writer_->AwaitWritten(writer_->Replace(Checkpoint(now)), options_.patience);
    }
  } else if (!batch_.empty()) {
    writer_->AwaitWritten(writer_->Append(std::exchange(batch_, {})), options_.patience);
  }
  ForgetWritten();
  ReportFailure();
  CountMemory();
}

void Ledger::ForgetWritten() {
  std::erase_if(
      new_places_, [this](const auto& place) { return IsWritten(place.second.write); });
  std::erase_if(new_ends_, [this](const NewEnd& end) { return end.told && IsWritten(end.write); });
  static_cast<void>(Seen());
}

bool Ledger::Flush(std::chrono::milliseconds patience) {
  if (writer_ == nullptr) return true;
  if (!batch_.empty()) writer_->Append(std::exchange(batch_, {}));
  const bool is_written = writer_->AwaitWritten(writer_->last(), patience);
  CountMemory();
  return is_written;
}

void Ledger::ReportFailure() {
  const std::optional<std::string> error = writer_->stats().error;
  if (error && failure_ != error) {
    diagnostics_.Forget(*error);
    diagnostics_.Report("state", *error + "; the files of ended processes stay until it can be written: free some space");
  }
  failure_ = error;
}

void Ledger::MoveTo(std::shared_ptr<JournalFile> file) {
  options_.file = std::move(file);
  if (writer_ == nullptr) return;
  ForgetWritten();  // what was shown stays
  StartWriter(writer_->last(), /*is_written=*/false);
}

std::optional<JournalWriter::Stats> Ledger::journal_stats() const {
  return writer_ == nullptr ? std::nullopt : std::optional(writer_->stats());
}

}  // namespace persia::agent
