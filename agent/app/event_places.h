// Up to which record each process's events were read, so that an agent that comes back does not write them down again.
//
// Written after the events were, so that one that is killed between the two writes some of them twice, and none never.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/job_session.h"
#include "state/state_file.h"

namespace persia::agent {

class EventPlaces {
 public:
  // By the segment's id.
  using Tickets = std::map<std::string, uint64_t>;

  explicit EventPlaces(const StatePlace& place);

  // What the agent before left; empty if there was none, or it cannot be read.
  Tickets Load();
  // Does nothing where nothing changed.
  void Save(const Tickets& tickets);

 private:
  StateFile file_;
  Tickets saved_;
};

}  // namespace persia::agent
