// The payload: number of entries (U32), then of each the segment's id (String) and the position (U64).
#include "job/event_position_file.h"

#include "base/log.h"
#include "files/bytes.h"

namespace persia::agent {

EventPositionFile::EventPositionFile(const StateLocation& location)
    : file_({.directory_fd = location.directory_fd,
             .directory = location.directory,
             .name = location.FileName("events"),
             .magic = {'P', 'R', 'S', 'M', 'E', 'V', 'P', '\n'},
             .mode = location.mode}) {}

EventPositionFile::Positions EventPositionFile::Load() {
  std::string set_aside;
  const auto payload = file_.Read(set_aside);
  if (!set_aside.empty()) {
    LogWarning("events.state", set_aside);
  }
  Positions positions;
  if (payload.ok() && payload.value()) {
    ByteReader reader(*payload.value());
    constexpr size_t kMinEntryBytes = sizeof(uint32_t) + sizeof(uint64_t);
    for (uint32_t left = reader.Count(kMinEntryBytes); left > 0 && reader.ok(); --left) {
      std::string id(reader.String());
      positions.emplace(std::move(id), reader.U64());
    }
  }
  saved_ = positions;
  return positions;
}

void EventPositionFile::Save(const Positions& positions) {
  if (positions == saved_) return;
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(positions.size()));
  for (const auto& [id, position] : positions) {
    writer.String(id);
    writer.U64(position);
  }
  // A failed write is repeated with the next change; an agent that is killed before that writes some events twice.
  if (file_.Write(std::move(writer).Take()).ok()) {
    saved_ = positions;
  }
}

}  // namespace persia::agent
