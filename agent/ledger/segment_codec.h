// The encoding of the parts of a segment that the ledger keeps: identity, families, labels, sums.
//
// In the terms of files/bytes.h; ledger/state_format.md has the grammar. A reader that fails leaves reader.ok() false.
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "files/bytes.h"
#include "ledger/retired_processes.h"
#include "segment/measurements.h"

namespace persia::agent {

// Times are milliseconds since 1970.
void WriteTime(std::chrono::system_clock::time_point time, ByteWriter& writer);
std::chrono::system_clock::time_point ReadTime(ByteReader& reader);
// The steady time of a wall time; `now` if the wall time is in the future, as after the clock was set back.
std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now);

void WriteIdentity(const SegmentIdentity& identity, ByteWriter& writer);
SegmentIdentity ReadIdentity(ByteReader& reader);

void WriteFamily(const SegmentFamily& family, ByteWriter& writer);
// Nothing: no segment can have such a family.
std::optional<SegmentFamily> ReadFamily(ByteReader& reader);
inline constexpr size_t kMinFamilyBytes = 22;

void WriteProcess(const LastProcess& process, ByteWriter& writer);
LastProcess ReadProcess(ByteReader& reader);

void WriteTerms(std::span<const double> terms, ByteWriter& writer);
std::vector<double> ReadTerms(ByteReader& reader);

// Numbers of series.
void WriteNumbers(std::span<const uint32_t> numbers, ByteWriter& writer);
std::vector<uint32_t> ReadNumbers(ByteReader& reader);

// Whether the bytes are exactly `count` labels as in a segment's record.
bool AreLabels(std::string_view bytes, uint32_t count);

}  // namespace persia::agent
