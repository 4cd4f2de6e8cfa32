// The longest pause in milliseconds (U64), since when the job hangs (time), and a list of processes: pid namespace (U64), pid
// (U32), start ticks (U64), ordinal (U32), changes (U64), since when it is unchanged and since when it hangs (times); then the
// deaths (String, death_memory.cc), which a former state lacks. A time is in milliseconds since 1970; 0 stands for none.
#include "health/health_memory.h"

#include <utility>

#include "files/bytes.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using TimePoint = HealthMemory::TimePoint;

void WriteMoment(const std::optional<TimePoint>& time, ByteWriter& writer) {
  const auto since_1970 = time.value_or(TimePoint()).time_since_epoch();
  writer.U64(static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(since_1970).count()));
}

std::optional<TimePoint> ReadMoment(ByteReader& reader) {
  const auto ms = static_cast<int64_t>(reader.U64());
  return ms == 0 ? std::nullopt : std::optional(TimePoint(std::chrono::duration_cast<TimePoint::duration>(milliseconds(ms))));
}

}  // namespace

std::string EncodeHealth(const HealthMemory& memory) {
  ByteWriter writer;
  writer.U64(static_cast<uint64_t>(memory.longest_pause.count()));
  WriteMoment(memory.job_hangs_since, writer);
  writer.U32(static_cast<uint32_t>(memory.processes.size()));
  for (const HealthMemory::Process& process : memory.processes) {
    writer.U64(process.pid_namespace);
    writer.U32(process.pid);
    writer.U64(process.start_ticks);
    writer.U32(process.ordinal);
    writer.U64(process.changes);
    WriteMoment(process.unchanged_since, writer);
    WriteMoment(process.hung_since, writer);
  }
  writer.String(EncodeDeaths(memory.deaths));
  return std::move(writer).Take();
}

std::optional<HealthMemory> DecodeHealth(std::string_view bytes) {
  ByteReader reader(bytes);
  HealthMemory memory{.longest_pause = milliseconds(static_cast<int64_t>(reader.U64()))};
  memory.job_hangs_since = ReadMoment(reader);
  constexpr size_t kProcessBytes = 48;
  for (uint32_t left = reader.Count(kProcessBytes); left > 0 && reader.ok(); --left) {
    HealthMemory::Process& process = memory.processes.emplace_back();
    process.pid_namespace = reader.U64();
    process.pid = reader.U32();
    process.start_ticks = reader.U64();
    process.ordinal = reader.U32();
    process.changes = reader.U64();
    process.unchanged_since = ReadMoment(reader);
    process.hung_since = ReadMoment(reader);
  }
  if (reader.ok() && !reader.done()) {
    auto deaths = DecodeDeaths(reader.String());
    if (!deaths) return std::nullopt;
    memory.deaths = *std::move(deaths);
  }
  if (!reader.done() || memory.longest_pause.count() < 0) return std::nullopt;
  return memory;
}

}  // namespace persia::agent
