// The payload: number of entries (U32), then of each the segment's id (String) and the ticket (U64).
#include "app/event_places.h"

#include "app/log.h"
#include "state/bytes.h"

namespace persia::agent {

EventPlaces::EventPlaces(const StatePlace& place)
    : file_({.directory_fd = place.directory_fd,
             .directory = place.directory,
             .name = place.Name("events"),
             .magic = {'P', 'R', 'S', 'M', 'E', 'V', 'P', '\n'},
             .mode = place.mode}) {}

EventPlaces::Tickets EventPlaces::Load() {
  std::string set_aside;
  const auto payload = file_.Read(set_aside);
  if (!set_aside.empty()) {
    LogWarning("events.state", set_aside);
  }
  Tickets tickets;
  if (payload.ok() && payload.value()) {
    ByteReader reader(*payload.value());
    constexpr size_t kLeastEntry = sizeof(uint32_t) + sizeof(uint64_t);
    for (uint32_t left = reader.Count(kLeastEntry); left > 0 && reader.ok(); --left) {
      std::string id(reader.String());
      tickets.emplace(std::move(id), reader.U64());
    }
  }
  saved_ = tickets;
  return tickets;
}

void EventPlaces::Save(const Tickets& tickets) {
  if (tickets == saved_) {
    return;
  }
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(tickets.size()));
  for (const auto& [id, ticket] : tickets) {
    writer.String(id);
    writer.U64(ticket);
  }
  // What cannot be written now is with the next change; until then an agent that is killed writes events down twice.
  if (file_.Write(std::move(writer).Take()).ok()) {
    saved_ = tickets;
  }
}

}  // namespace persia::agent
