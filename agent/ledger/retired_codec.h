// The encoding of the ended processes' sums: their instances and groups, each separately.
//
// In the terms of files/bytes.h; ledger/state_format.md has the grammar. Times to live continue, by the wall clock.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "files/bytes.h"
#include "ledger/retired_processes.h"

namespace persia::agent {

void WriteInstance(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer);
// Adds it to `processes`. A failure leaves reader.ok() false.
void ReadInstance(ByteReader& reader, RetiredProcesses& processes, const CollectTime& now);
// How its processes ended, which an agent that does not know it leaves out.
void WriteExits(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer);
// Adds them to the instance, if there is one. A failure leaves reader.ok() false.
void ReadExits(ByteReader& reader, RetiredProcesses& processes);
// When the last processes of its ordinals lived, which an agent that does not know it leaves out.
void WriteSpans(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer);
// Adds them to the instance, if there is one. A failure leaves reader.ok() false.
void ReadSpans(ByteReader& reader, RetiredProcesses& processes);

// Expired gauges are left out.
void WriteGroup(const RetiredGroup& group, const CollectTime& now, ByteWriter& writer);
// The series of a group record that were removed, which an agent that does not know it leaves out; empty: none.
std::string RemovedOf(const RetiredGroup& group, const CollectTime& now);
// Adds it to `processes`. `version`: of the file. Returns the malformed part, or an empty text.
std::string ReadGroup(ByteReader& reader, uint32_t version, RetiredProcesses& processes, const CollectTime& now);

}  // namespace persia::agent
