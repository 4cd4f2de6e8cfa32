#include "job/turns.h"

#include <fcntl.h>

#include <utility>

namespace persia::agent {
namespace {

void SetLock(const Place& place, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(place.number);
  lock.l_len = 1;
  if (place.fd >= 0) fcntl(place.fd, F_OFD_SETLK, &lock);
}

void Take(const Place& place) { SetLock(place, F_RDLCK); }

// For the supervisor, too, which shares the open file: other agents do not count on this `exec` any more.
void Leave(const Place& place) { SetLock(place, F_UNLCK); }

// Waits until no other agent of the run collects. False: the command has ended, and the other agent will collect once more.
// `is_collected`: another one has done so.
bool AwaitTurn(const JobSession& session, const TurnWait& wait, bool& is_collected) {
  for (;;) {
    const bool command_has_ended = wait.command_has_ended();  // before the other's state is read
    auto other = session.Holder();
    if (!other) return true;
    if (command_has_ended && other->collects) {
      is_collected = true;
      Leave(wait.place);
      other = session.Holder();
      if (other && other->collects) return false;
      Take(wait.place);  // the other one may have left the end of the run to this one
      continue;
    }
    const bool is_asked_to_end = wait.pause();
    if (!command_has_ended || !is_asked_to_end) continue;
    Leave(wait.place);
    return false;
  }
}

}  // namespace

std::optional<Result<JobSession>> BeginInTurn(const AgentOptions& options, std::chrono::milliseconds patience,
                                              const JobStarter& starter, const TurnWait& wait) {
  Take(wait.place);  // a former agent may have left it
  bool is_collected = false;
  bool waits = false;
  const auto begin = [&](std::chrono::milliseconds for_lock) {
    JobStarter agent = starter;
    agent.may_be_over = is_collected || (wait.is_restarted && wait.command_has_ended());
    agent.goes_on = waits || wait.is_restarted;
    return JobSession::Begin(options, for_lock, agent);
  };
  Result<JobSession> session = begin(patience);
  while (session.ok() && session.value().other_agent() && !session.value().other_run() && session.value().other_job().empty()) {
    if (!std::exchange(waits, true)) {
      session.value().NoteStateName(options);
      wait.on_wait(session.value());
    }
    if (!AwaitTurn(session.value(), wait, is_collected)) return std::nullopt;
    session = begin({});
  }
  const bool collects =
      session.ok() && !session.value().other_agent() && session.value().other_job().empty() && !session.value().run_is_over();
  if (collects) {
    session.value().NoteStateName(options);
    session.value().NoteCollecting(true);
  } else {
    Leave(wait.place);
  }
  return session;
}

void EndTurn(JobSession& session, const TurnEnd& end, const std::function<void(bool deletes_groups)>& finish,
             const std::function<void()>& end_run) {
  session.NoteCollecting(false);
  finish(end.deletes_groups && !session.HasOthers(end.place.number));
  if (end.is_complete() && !session.HasOthers(end.place.number)) end_run();
  Leave(end.place);
}

}  // namespace persia::agent
