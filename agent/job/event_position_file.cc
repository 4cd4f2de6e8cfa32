// The record: number of entries (U32), then of each the segment's id (String) and the position (U64).
#include "job/event_position_file.h"

#include <utility>

#include "base/log.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

// A journal of checkpoints alone.
constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'E', 'V', 'P', '\n'}, .version = 2};
constexpr uint16_t kPositionsTag = 1;

}  // namespace

EventPositionFile::EventPositionFile(const StateLocation& location)
    : file_(std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = location.directory_fd,
                                                                       .directory = location.directory,
                                                                       .name = location.FileName("events"),
                                                                       .mode = location.mode,
                                                                       .max_bytes = kMaxListBytes})),
      writer_({.file = file_, .format = kFormat}) {
  writer_.Start();
}

EventPositionFile::Positions EventPositionFile::Load() {
  std::string set_aside;
  const auto content = ReadJournal(*file_, kFormat, /*look=*/false, set_aside);
  if (!set_aside.empty()) {
    LogWarning("events.state", set_aside);
  }
  Positions positions;
  if (content.ok() && !content.value().records.empty()) {
    ByteReader reader(content.value().records.back().payload);
    constexpr size_t kMinEntryBytes = sizeof(uint32_t) + sizeof(uint64_t);
    for (uint32_t left = reader.Count(kMinEntryBytes); left > 0 && reader.ok(); --left) {
      std::string id(reader.String());
      positions.emplace(std::move(id), reader.U64());
    }
  }
  passed_ = positions;
  return positions;
}

void EventPositionFile::Save(const Positions& positions) {
  if (positions == passed_) return;
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(positions.size()));
  for (const auto& [id, position] : positions) {
    writer.String(id);
    writer.U64(position);
  }
  // If it fails, the next change is written; an agent that is killed before that writes some events twice.
  std::string record;
  AddRecord(record, kPositionsTag, std::move(writer).Take());
  writer_.Replace(std::move(record));
  passed_ = positions;
}

}  // namespace persia::agent
