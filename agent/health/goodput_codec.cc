// The boot id (String), the wall time at which CLOCK_MONOTONIC was 0 (I64, nanoseconds since 1970), and a list of ranks: role
// (String), replica (U32), until (I64), a list of times by bucket (I64 each), redone steps, restarts (U64 each), repair, open
// down (I64 each), whether it marks phases (U8), the step that it had reached (Step); of its last process: id (String), start
// ticks, birth (U64 each), restart count (U32), ending (U8), ended (I64), whether it marks phases, has changed, and repairs (U8
// each), first and highest step (Step), redone steps (U64), a list of phases: name (String), time (I64). Then, which a former
// state lacks, of each rank: the pid of its last process (U32), the highest step of all its programs (Step). Then, which the
// next state lacked, of each rank: the highest step by counts (Step), the steps redone by counts (U64), whether a process that
// failed gave neither counts nor numbers, and whether the redone steps are unknown (U8 each), the steps that its last process
// has counted (F64). An I64 is a U64 in two's complement, and a Step an F64 that is -1 for none. Durations and moments are in
// nanoseconds, the latter of CLOCK_MONOTONIC.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "files/bytes.h"
#include "health/goodput.h"

namespace persia::agent {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

void WriteTime(Nanoseconds time, ByteWriter& writer) { writer.U64(static_cast<uint64_t>(time.count())); }
Nanoseconds ReadTime(ByteReader& reader) { return Nanoseconds(static_cast<int64_t>(reader.U64())); }

void WriteStep(const std::optional<double>& step, ByteWriter& writer) { writer.F64(step.value_or(-1)); }
std::optional<double> ReadStep(ByteReader& reader) {
  const double step = reader.F64();
  return step >= 0 ? std::optional(step) : std::nullopt;
}

void WriteLife(const RankAccount::Life& life, ByteWriter& writer) {
  writer.String(life.id);
  writer.U64(life.start_ticks);
  writer.U64(life.birth_unix_ns);
  writer.U32(life.restart_count);
  writer.U8(static_cast<uint8_t>(life.ending));
  WriteTime(life.ended, writer);
  for (const bool flag : {life.marks, life.changes, life.repairs}) writer.U8(flag ? 1 : 0);
  WriteStep(life.first_step, writer);
  WriteStep(life.highest_step, writer);
  writer.U64(life.redone_steps);
  writer.U32(static_cast<uint32_t>(life.phases.size()));
  for (const auto& [phase, time] : life.phases) {
    writer.String(phase);
    WriteTime(time, writer);
  }
}

// False: the bytes are malformed.
bool ReadLife(ByteReader& reader, RankAccount::Life& life) {
  life.id = reader.String();
  life.start_ticks = reader.U64();
  life.birth_unix_ns = reader.U64();
  life.restart_count = reader.U32();
  const uint8_t ending = reader.U8();
  if (ending > static_cast<uint8_t>(RankAccount::Ending::kLeftOut)) return false;
  life.ending = static_cast<RankAccount::Ending>(ending);
  life.ended = ReadTime(reader);
  for (bool* flag : {&life.marks, &life.changes, &life.repairs}) *flag = reader.U8() != 0;
  life.first_step = ReadStep(reader);
  life.highest_step = ReadStep(reader);
  life.redone_steps = reader.U64();
  constexpr size_t kPhaseBytes = 12;
  for (uint32_t left = reader.Count(kPhaseBytes); left > 0 && reader.ok(); --left) {
    const std::string phase(reader.String());
    life.phases.emplace_back(phase, ReadTime(reader));
  }
  return reader.ok();
}

bool ReadAccount(ByteReader& reader, RankAccount& account) {
  account.until = ReadTime(reader);
  const uint32_t buckets = reader.U32();  // those of a former agent are the first ones of today
  if (buckets > kBuckets) return false;
  for (uint32_t i = 0; i < buckets; ++i) account.time[i] = ReadTime(reader);
  account.redone_steps = reader.U64();
  account.restarts = reader.U64();
  account.repair = ReadTime(reader);
  account.open_down = ReadTime(reader);
  account.marks = reader.U8() != 0;
  account.reached = ReadStep(reader);
  return ReadLife(reader, account.life);
}

}  // namespace

std::string EncodeGoodput(const RankAccounts& accounts, const MachineClocks& clocks) {
  ByteWriter writer;
  writer.String(clocks.boot_id);
  WriteTime(clocks.zero, writer);
  writer.U32(static_cast<uint32_t>(accounts.size()));
  for (const auto& [rank, account] : accounts) {
    writer.String(rank.first);
    writer.U32(static_cast<uint32_t>(rank.second));
    WriteTime(account.until, writer);
    writer.U32(kBuckets);
    for (const Nanoseconds time : account.time) WriteTime(time, writer);
    writer.U64(account.redone_steps);
    writer.U64(account.restarts);
    WriteTime(account.repair, writer);
    WriteTime(account.open_down, writer);
    writer.U8(account.marks ? 1 : 0);
    WriteStep(account.reached, writer);
    WriteLife(account.life, writer);
  }
  for (const auto& [rank, account] : accounts) {
    writer.U32(account.life.pid);
    WriteStep(account.highest, writer);
  }
  for (const auto& [rank, account] : accounts) {
    WriteStep(account.counted, writer);
    writer.U64(account.counted_redone);
    for (const bool flag : {account.uncounted, account.is_unknown}) writer.U8(flag ? 1 : 0);
    writer.F64(account.life.counted);
  }
  return std::move(writer).Take();
}

std::optional<RankAccounts> DecodeGoodput(std::string_view bytes, const MachineClocks& clocks) {
  ByteReader reader(bytes);
  const bool is_same_boot = reader.String() == clocks.boot_id;
  const Nanoseconds saved_zero = ReadTime(reader);
  const Nanoseconds shift = is_same_boot ? Nanoseconds(0) : saved_zero - clocks.zero;
  RankAccounts accounts;
  constexpr size_t kRankBytes = 200;
  for (uint32_t left = reader.Count(kRankBytes); left > 0; --left) {
    const std::string role(reader.String());
    const auto replica = static_cast<int32_t>(reader.U32());
    RankAccount account;
    if (!ReadAccount(reader, account)) return std::nullopt;
    // The wall clock may be wrong: a moment of a former boot lies before this one.
    const Nanoseconds last = is_same_boot ? clocks.now : Nanoseconds(0);
    account.until = std::min(account.until + shift, last);
    account.life.ended = std::min(account.life.ended + shift, last);
    if (!is_same_boot) account.life.start_ticks = 0;  // those of this boot start later
    accounts.emplace(RankKey(role, replica), std::move(account));
  }
  const bool is_of_former_agent = reader.done();
  for (auto& [rank, account] : accounts) {
    if (is_of_former_agent) break;
    account.life.pid = reader.U32();
    account.highest = ReadStep(reader);
  }
  const bool lacks_counts = reader.done();
  for (auto& [rank, account] : accounts) {
    if (lacks_counts) break;
    account.counted = ReadStep(reader);
    account.counted_redone = reader.U64();
    for (bool* flag : {&account.uncounted, &account.is_unknown}) *flag = reader.U8() != 0;
    account.life.counted = std::max(0.0, reader.F64());
  }
  return reader.done() ? std::optional(std::move(accounts)) : std::nullopt;
}

}  // namespace persia::agent
