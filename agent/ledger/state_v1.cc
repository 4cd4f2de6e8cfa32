// The payload, in the terms of files/bytes.h. A list is its count (U32), then its entries. Instances and groups are those of
// state_format.md.
//
//   state   run id (String), folded: list of ids (String), ordinals of living processes: list of (id (String), ordinal (U32)),
//           values of living processes: list of (id (String), a state of that process alone (String)),
//           processes folded in all (U64), list of instances, list of groups
#include "ledger/state_v1.h"

#include <cstdint>
#include <utility>

#include "files/bytes.h"
#include "ledger/retired_codec.h"

namespace persia::agent {
namespace {

// Of a state of one process alone; nothing if it is of none or of several.
bool ReadLiving(std::string_view payload, const std::string& id, const CollectTime& now, SavedProcess& living) {
  const auto alone = ReadStateOfVersion1(payload, {}, now);
  if (!alone.ok() || alone.value().processes.groups().size() != 1 || alone.value().processes.instances().size() != 1) {
    return false;
  }
  Measurements input = alone.value().processes.groups().front().Input();
  const auto& last = alone.value().processes.instances().begin()->second.last_processes;
  input.id = id;
  input.ordinal = last.empty() ? 0 : last.begin()->first;
  input.ordinals = {};
  living.Update(input, last.empty() ? LastProcess() : last.begin()->second);
  return true;
}

}  // namespace

Result<StateOfVersion1> ReadStateOfVersion1(std::string_view payload, const RetiredProcesses::Options& options,
                                            const CollectTime& now) {
  ByteReader reader(payload);
  StateOfVersion1 state{.processes = RetiredProcesses(options)};
  state.run_id = reader.String();
  for (uint32_t left = reader.Count(4); left > 0 && reader.ok(); --left) {
    state.folded.emplace(reader.String());
  }
  constexpr size_t kOrdinalBytes = 8;
  for (uint32_t left = reader.Count(kOrdinalBytes); left > 0 && reader.ok(); --left) {
    std::string id(reader.String());
    state.ordinals.emplace(std::move(id), reader.U32());
  }
  for (uint32_t left = reader.Count(2 * sizeof(uint32_t)); left > 0 && reader.ok(); --left) {
    const std::string id(reader.String());
    const std::string_view alone = reader.String();
    if (reader.ok() && !ReadLiving(alone, id, now, state.living[id])) return Error{"the values of " + id + " are malformed"};
  }
  const uint64_t processes = reader.U64();
  constexpr size_t kMinInstanceBytes = 20;
  for (uint32_t left = reader.Count(kMinInstanceBytes); left > 0 && reader.ok(); --left) {
    ReadInstance(reader, state.processes, now);
  }
  constexpr size_t kMinGroupBytes = 168;
  for (uint32_t left = reader.Count(kMinGroupBytes); left > 0 && reader.ok(); --left) {
    if (std::string malformed = ReadGroup(reader, 1, state.processes, now); !malformed.empty() && reader.ok()) {
      return Error{std::move(malformed)};
    }
  }
  if (!reader.done()) return Error{reader.ok() ? "it has bytes after its end" : "it is too short for its counts"};
  state.processes.RestoreCount(processes);
  return state;
}

}  // namespace persia::agent
