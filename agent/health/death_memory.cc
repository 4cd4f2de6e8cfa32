// A list of (cause (String), count (U64)), a list of (source (String), kills (U64)), a list of deaths, a list of untold ends.
//
// A death: role, instance, process, cause, exit, what, look at, phase, stacks (String), pid (U32), start ticks (U64), began,
// ended (times), step (optional F64), list of last events (String), circumstances. An end: segment id, phase (String), list of
// identity labels (name, value), job (String), ordinal, pid (U32), pid namespace, start ticks (U64), birth, end (times), step
// (optional F64), hung for (seconds, optional U64), exception, list of last events, circumstances. An exception begins with a
// U8: 0 none, 1 uncaught, 2 caught. A time is in milliseconds since 1970. An optional value is a U8, 1 if it is there, and then
// the value.
#include "health/death_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "files/bytes.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using UnixTime = std::chrono::system_clock::time_point;

// The least bytes of an entry of a list, against counts that are larger than the rest.
constexpr size_t kStringBytes = 4;

void WriteUnixTime(UnixTime time, ByteWriter& writer) {
  writer.U64(static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count()));
}

UnixTime ReadUnixTime(ByteReader& reader) {
  return UnixTime(std::chrono::duration_cast<UnixTime::duration>(milliseconds(static_cast<int64_t>(reader.U64()))));
}

void WriteOptional(const std::optional<uint64_t>& value, ByteWriter& writer) {
  writer.U8(value ? 1 : 0);
  if (value) writer.U64(*value);
}

std::optional<uint64_t> ReadOptional(ByteReader& reader) {
  return reader.U8() != 0 ? std::optional(reader.U64()) : std::nullopt;
}

void WriteOptionalStep(const std::optional<double>& value, ByteWriter& writer) {
  writer.U8(value ? 1 : 0);
  if (value) writer.F64(*value);
}

std::optional<double> ReadOptionalStep(ByteReader& reader) {
  if (reader.U8() == 0) return std::nullopt;
  const double step = reader.F64();
  constexpr double kMost = 0x1p53;
  return step >= 0 && step <= kMost ? std::optional(step) : std::nullopt;
}

void WriteTexts(const std::vector<std::string>& texts, ByteWriter& writer) {
  writer.U32(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.String(text);
}

std::vector<std::string> ReadTexts(ByteReader& reader) {
  std::vector<std::string> texts;
  for (uint32_t left = reader.Count(kStringBytes); left > 0 && reader.ok(); --left) texts.emplace_back(reader.String());
  return texts;
}

void WriteCircumstances(const Circumstances& about, ByteWriter& writer) {
  writer.U8(about.killed_for_memory ? 1 : 0);
  writer.U8(about.kills_are_known ? 1 : 0);
  writer.String(about.memory_cgroup);
  WriteOptional(about.memory_limit, writer);
  WriteOptional(about.resident, writer);
  WriteOptional(about.resident_before, writer);
  WriteOptional(about.oom_score ? std::optional<uint64_t>(*about.oom_score) : std::nullopt, writer);
  WriteTexts(about.full_filesystems, writer);
  WriteOptional(about.open_files, writer);
  WriteOptional(about.max_open_files, writer);
  WriteOptional(about.max_file_bytes, writer);
  WriteOptional(about.cpu_seconds, writer);
  WriteOptional(about.max_cpu_seconds, writer);
  WriteOptional(about.max_address_space, writer);
  WriteTexts(about.stderr_lines, writer);
  writer.String(about.stacks);
}

Circumstances ReadCircumstances(ByteReader& reader) {
  Circumstances about;
  about.killed_for_memory = reader.U8() != 0;
  about.kills_are_known = reader.U8() != 0;
  about.memory_cgroup = reader.String();
  about.memory_limit = ReadOptional(reader);
  about.resident = ReadOptional(reader);
  about.resident_before = ReadOptional(reader);
  if (const auto score = ReadOptional(reader)) about.oom_score = static_cast<int>(*score);
  about.full_filesystems = ReadTexts(reader);
  about.open_files = ReadOptional(reader);
  about.max_open_files = ReadOptional(reader);
  about.max_file_bytes = ReadOptional(reader);
  about.cpu_seconds = ReadOptional(reader);
  about.max_cpu_seconds = ReadOptional(reader);
  about.max_address_space = ReadOptional(reader);
  about.stderr_lines = ReadTexts(reader);
  about.stacks = reader.String();
  return about;
}

void WriteDeath(const Death& death, ByteWriter& writer) {
  for (const std::string* text : {&death.role, &death.instance, &death.process}) writer.String(*text);
  writer.String(Name(death.cause));
  for (const std::string* text : {&death.exit, &death.what, &death.look_at, &death.phase, &death.stacks}) writer.String(*text);
  writer.U32(death.pid);
  writer.U64(death.start_ticks);
  WriteUnixTime(death.began, writer);
  WriteUnixTime(death.ended_at, writer);
  WriteOptionalStep(death.step, writer);
  WriteTexts(death.last_events, writer);
  WriteCircumstances(death.about, writer);
}

// A cause of a newer agent is unknown to this one.
DeathCause CauseNamed(std::string_view name) {
  for (size_t i = 0; i < kDeathCauses; ++i) {
    if (Name(static_cast<DeathCause>(i)) == name) return static_cast<DeathCause>(i);
  }
  return DeathCause::kUnknown;
}

Death ReadDeath(ByteReader& reader) {
  Death death;
  for (std::string* text : {&death.role, &death.instance, &death.process}) *text = reader.String();
  death.cause = CauseNamed(reader.String());
  for (std::string* text : {&death.exit, &death.what, &death.look_at, &death.phase, &death.stacks}) *text = reader.String();
  death.pid = reader.U32();
  death.start_ticks = reader.U64();
  death.began = ReadUnixTime(reader);
  death.ended_at = ReadUnixTime(reader);
  death.step = ReadOptionalStep(reader);
  death.last_events = ReadTexts(reader);
  death.about = ReadCircumstances(reader);
  return death;
}

void WriteEnd(const ProcessEnd& end, ByteWriter& writer) {
  writer.String(end.segment_id);
  writer.String(end.phase);
  writer.U32(static_cast<uint32_t>(end.identity.labels.size()));
  for (const auto& [name, value] : end.identity.labels) {
    writer.String(name);
    writer.String(value);
  }
  writer.String(end.identity.job);
  writer.U32(end.ordinal);
  writer.U32(end.pid);
  writer.U64(end.pid_namespace);
  writer.U64(end.start_ticks);
  WriteUnixTime(end.birth, writer);
  WriteUnixTime(end.ended_at, writer);
  WriteOptionalStep(end.step, writer);
  WriteOptional(end.hung_for ? std::optional<uint64_t>(end.hung_for->count()) : std::nullopt, writer);
  writer.U8(!end.exception ? 0 : end.exception->was_caught ? 2 : 1);
  if (end.exception) {
    const UncaughtException& exception = *end.exception;
    for (const std::string* text : {&exception.type, &exception.message, &exception.where, &exception.phase}) {
      writer.String(*text);
    }
    writer.U32(static_cast<uint32_t>(exception.error_number));
  }
  WriteTexts(end.last_events, writer);
  WriteCircumstances(end.about, writer);
}

ProcessEnd ReadEnd(ByteReader& reader) {
  ProcessEnd end;
  end.segment_id = reader.String();
  end.phase = reader.String();
  for (uint32_t left = reader.Count(2 * kStringBytes); left > 0 && reader.ok(); --left) {
    std::string name(reader.String());
    end.identity.labels.emplace_back(std::move(name), reader.String());
  }
  end.identity.job = reader.String();
  end.ordinal = reader.U32();
  end.pid = reader.U32();
  end.pid_namespace = reader.U64();
  end.start_ticks = reader.U64();
  end.birth = ReadUnixTime(reader);
  end.ended_at = ReadUnixTime(reader);
  end.step = ReadOptionalStep(reader);
  if (const auto hung_for = ReadOptional(reader)) end.hung_for = std::chrono::seconds(static_cast<int64_t>(*hung_for));
  if (const uint8_t kind = reader.U8(); kind != 0) {
    UncaughtException& exception = end.exception.emplace();
    exception.was_caught = kind == 2;
    for (std::string* text : {&exception.type, &exception.message, &exception.where, &exception.phase}) *text = reader.String();
    exception.error_number = static_cast<int>(reader.U32());
  }
  end.last_events = ReadTexts(reader);
  end.about = ReadCircumstances(reader);
  return end;
}

}  // namespace

std::string EncodeDeaths(const DeathMemory& memory) {
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(kDeathCauses));
  for (size_t i = 0; i < kDeathCauses; ++i) {
    writer.String(Name(static_cast<DeathCause>(i)));
    writer.U64(memory.totals[i]);
  }
  writer.U32(static_cast<uint32_t>(memory.kills.size()));
  for (const auto& [source, kills] : memory.kills) {
    writer.String(source);
    writer.U64(kills);
  }
  writer.U32(static_cast<uint32_t>(memory.deaths.size()));
  for (const Death& death : memory.deaths) WriteDeath(death, writer);
  writer.U32(static_cast<uint32_t>(memory.untold.size()));
  for (const ProcessEnd& end : memory.untold) WriteEnd(end, writer);
  return std::move(writer).Take();
}

std::optional<DeathMemory> DecodeDeaths(std::string_view bytes) {
  ByteReader reader(bytes);
  DeathMemory memory;
  for (uint32_t left = reader.Count(kStringBytes + sizeof(uint64_t)); left > 0 && reader.ok(); --left) {
    const DeathCause cause = CauseNamed(reader.String());
    memory.totals[static_cast<size_t>(cause)] += reader.U64();
  }
  for (uint32_t left = reader.Count(kStringBytes + sizeof(uint64_t)); left > 0 && reader.ok(); --left) {
    std::string source(reader.String());
    memory.kills[std::move(source)] = reader.U64();
  }
  constexpr size_t kLeastDeath = 9 * kStringBytes;
  for (uint32_t left = reader.Count(kLeastDeath); left > 0 && reader.ok(); --left) memory.deaths.push_back(ReadDeath(reader));
  constexpr size_t kLeastEnd = 4 * kStringBytes;
  for (uint32_t left = reader.Count(kLeastEnd); left > 0 && reader.ok(); --left) memory.untold.push_back(ReadEnd(reader));
  if (!reader.done() || memory.deaths.size() > DeathMemory::kMaxDeaths) return std::nullopt;
  return memory;
}

}  // namespace persia::agent
