// The boot id (String), the wall time at which CLOCK_MONOTONIC was 0 (nanoseconds since 1970), and the map of ranks: role
// (String), replica (U32), and the account as in Fields (files/bytes.h). Durations and moments are in nanoseconds, the latter
// of CLOCK_MONOTONIC.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "files/bytes.h"
#include "health/goodput.h"

namespace persia::agent {
namespace {

bool IsCount(const std::optional<double>& step) { return !step || *step >= 0; }

}  // namespace

template <class Archive>
void Fields(Archive& archive, RankAccount::Life& life) {
  archive(life.segment_id, life.id, life.birth_unix_ns, life.restart_count, life.ending, life.ended, life.marks, life.changes,
          life.repairs, life.counted, life.first_step, life.highest_step, life.redone_steps, life.phases);
  archive.Check(life.ending <= RankAccount::Ending::kLeftOut && IsCount(life.counted) && IsCount(life.first_step) &&
                IsCount(life.highest_step));
}

template <class Archive>
void Fields(Archive& archive, RankAccount& account) {
  archive(account.until, account.time, account.redone_steps, account.restarts, account.repair, account.open_down, account.marks,
          account.reached, account.highest, account.counted, account.counted_redone, account.uncounted, account.is_unknown,
          account.life);
  archive.Check(IsCount(account.reached) && IsCount(account.highest) && IsCount(account.counted));
}

std::string EncodeGoodput(const RankAccounts& accounts, const MachineClocks& clocks) {
  return Encode(clocks.boot_id, clocks.zero, accounts);
}

std::optional<RankAccounts> DecodeGoodput(std::string_view bytes, const MachineClocks& clocks) {
  std::string boot_id;
  std::chrono::nanoseconds zero{0};
  RankAccounts accounts;
  if (!Decode(bytes, boot_id, zero, accounts)) return std::nullopt;
  const bool is_same_boot = boot_id == clocks.boot_id;
  const std::chrono::nanoseconds shift = is_same_boot ? std::chrono::nanoseconds(0) : zero - clocks.zero;
  // The wall clock may be wrong: a moment of a former boot lies before this one.
  const std::chrono::nanoseconds last = is_same_boot ? clocks.now : std::chrono::nanoseconds(0);
  for (auto& [rank, account] : accounts) {
    account.until = std::min(account.until + shift, last);
    account.life.ended = std::min(account.life.ended + shift, last);
    if (!is_same_boot) account.life.id.start_ticks = 0;  // those of this boot start later
  }
  return accounts;
}

}  // namespace persia::agent
