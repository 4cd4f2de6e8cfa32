#include "ledger/segment_codec.h"

#include <algorithm>
#include <string>
#include <utility>

namespace persia::agent {

namespace segment = persia::metrics::segment;
using segment::Kind;
using std::chrono::milliseconds;

void WriteTime(std::chrono::system_clock::time_point time, ByteWriter& writer) {
  const int64_t ms = std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
  writer.U64(static_cast<uint64_t>(std::max<int64_t>(0, ms)));
}

std::chrono::system_clock::time_point ReadTime(ByteReader& reader) {
  constexpr uint64_t kEndOfTime = 1ULL << 43;  // the year 2248
  return std::chrono::system_clock::time_point(milliseconds(static_cast<int64_t>(std::min(reader.U64(), kEndOfTime))));
}

std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now) {
  return now.steady - std::max(std::chrono::system_clock::duration(0), now.wall - wall);
}

void WriteIdentity(const SegmentIdentity& identity, ByteWriter& writer) {
  writer.String(identity.job);
  writer.String(identity.run_id);
  writer.String(identity.role);
  writer.U32(static_cast<uint32_t>(identity.replica));
  writer.U32(identity.restart_count);
  writer.U32(static_cast<uint32_t>(identity.labels.size()));
  for (const auto& [name, value] : identity.labels) {
    writer.String(name);
    writer.String(value);
  }
}

SegmentIdentity ReadIdentity(ByteReader& reader) {
  SegmentIdentity identity;
  identity.job = reader.String();
  identity.run_id = reader.String();
  identity.role = reader.String();
  identity.replica = static_cast<int32_t>(reader.U32());
  identity.restart_count = reader.U32();
  for (uint32_t left = reader.Count(8); left > 0 && reader.ok(); --left) {
    std::string name(reader.String());
    identity.labels.emplace_back(std::move(name), reader.String());
  }
  return identity;
}

void WriteFamily(const SegmentFamily& family, ByteWriter& writer) {
  writer.U8(static_cast<uint8_t>(family.kind));
  writer.U8(static_cast<uint8_t>(family.policy));
  WriteTerms(family.bounds, writer);
  for (const std::string* text : {&family.group, &family.name, &family.help, &family.unit}) {
    writer.String(*text);
  }
  if (family.kind == Kind::kNativeHistogram) writer.U32(family.max_buckets);
}

std::optional<SegmentFamily> ReadFamily(ByteReader& reader) {
  SegmentFamily family;
  family.known = true;
  family.kind = static_cast<Kind>(reader.U8());
  const uint8_t policy = reader.U8();
  family.policy = static_cast<GaugePolicy>(policy);
  family.bounds = ReadTerms(reader);
  for (std::string* text : {&family.group, &family.name, &family.help, &family.unit}) {
    *text = reader.String();
  }
  if (family.kind == Kind::kNativeHistogram) family.max_buckets = static_cast<uint16_t>(reader.U32());
  const bool known_kind = family.kind >= Kind::kCounter && family.kind <= Kind::kNativeHistogram;
  if (!reader.ok() || !known_kind || policy > static_cast<uint8_t>(GaugePolicy::kEach) ||
      !GoodBounds(family.kind, family.bounds) || family.bounds.size() > (HasBounds(family.kind) ? segment::kMaxBounds : 0)) {
    return std::nullopt;
  }
  return family;
}

void WriteProcess(const LastProcess& process, ByteWriter& writer) {
  writer.U64(process.ended);
  writer.U32(process.pid);
  writer.U64(process.pid_namespace);
  writer.U64(process.start_ticks);
  writer.U32(process.restart_count);
  WriteTime(process.last_change, writer);
}

LastProcess ReadProcess(ByteReader& reader) {
  LastProcess process;
  process.ended = reader.U64();
  process.pid = reader.U32();
  process.pid_namespace = reader.U64();
  process.start_ticks = reader.U64();
  process.restart_count = reader.U32();
  process.last_change = ReadTime(reader);
  return process;
}

void WriteTerms(std::span<const double> terms, ByteWriter& writer) {
  writer.U32(static_cast<uint32_t>(terms.size()));
  for (const double term : terms) {
    writer.F64(term);
  }
}

std::vector<double> ReadTerms(ByteReader& reader) {
  std::vector<double> terms;
  for (uint32_t left = reader.Count(sizeof(double)); left > 0 && reader.ok(); --left) {
    terms.push_back(reader.F64());
  }
  return terms;
}

void WriteNumbers(std::span<const uint32_t> numbers, ByteWriter& writer) {
  writer.U32(static_cast<uint32_t>(numbers.size()));
  for (const uint32_t number : numbers) {
    writer.U32(number);
  }
}

std::vector<uint32_t> ReadNumbers(ByteReader& reader) {
  std::vector<uint32_t> numbers;
  for (uint32_t left = reader.Count(sizeof(uint32_t)); left > 0 && reader.ok(); --left) {
    numbers.push_back(reader.U32());
  }
  return numbers;
}

bool AreLabels(std::string_view bytes, uint32_t count) {
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < 2 * uint64_t{count} && reader.ok(); ++i) {
    reader.String();
  }
  return reader.done();
}

}  // namespace persia::agent
