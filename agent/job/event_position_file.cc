// The only record (as in files/bytes.h): the list of segment's id (String), position (U64).
#include "job/event_position_file.h"

#include <utility>

#include "base/log.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'E', 'V', 'P', '\n'}, .version = 1};

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
  if (!set_aside.empty()) LogWarning("events.state", set_aside);
  Positions positions;
  const bool is_good = content.ok() && Decode(content.value().only().value_or(""), positions);
  if (!is_good) positions.clear();
  passed_ = positions;
  return positions;
}

void EventPositionFile::Save(const Positions& positions) {
  if (positions == passed_) return;
  // If it fails, the next change is written; an agent that is killed before that writes some events twice.
  writer_.ReplaceOnly(Encode(positions));
  passed_ = positions;
}

}  // namespace persia::agent
