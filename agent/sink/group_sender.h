// Brings one identity's group to the gateway: what is written of it, what is left out, and what becomes of a refusal.
//
// A PushGateway refuses a group as a whole, whatever is wrong with one series of it. So the families that its answer names are
// held back and the rest is sent at once; an answer that names none is followed up by halves, and so is a connection that the
// gateway closes without an answer although it takes an empty group. These go by POST, which replaces families and not the
// group: what is accepted on the way is there, and what was there before does not disappear meanwhile.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/exposition_plan.h"
#include "format/group_renderer.h"
#include "model/snapshot.h"
#include "sink/push_format.h"
#include "sink/push_result.h"
#include "sink/quarantine.h"
#include "sink/refusal.h"
#include "sink/sink_log.h"
#include "sink/size_limit.h"

namespace persia::agent {

class GroupSender {
 public:
  // Sends a body of this format to a group; a refusal of status 400 is read into `refusal`.
  using Send = std::function<Attempt(std::string_view method, const std::string& path, GroupFormat format,
                                     const std::string& body, Refusal& refusal)>;

  struct Options {
    PushFormat::Choice format = PushFormat::Choice::kText;
    // Asks whoever is behind the connection of the last request whether it is a PushGateway.
    std::function<bool()> is_push_gateway;
    size_t max_push_bytes = 64 << 20;  // of a group
    std::chrono::milliseconds quarantine_retry = std::chrono::hours(1);
    Send send;
    Refusal::Redact redact;
    std::function<std::chrono::steady_clock::time_point()> now;
    SinkLog log;
  };

  explicit GroupSender(Options options);

  // The one family of the first identity of `trailer` stands at the end of each group, and is held back of all snapshots. A
  // gateway that refuses it gets the groups without, for a while.
  void set_trailer(Snapshot trailer);
  // Asks a gateway that takes what it gets whether it reads protobuf, if that is not known.
  void LearnFormat();
  // Of the next push.
  [[nodiscard]] GroupFormat format() const { return format_.current(); }

  // Nothing if the identity shows no series now. Success may mean: but for what is held back.
  std::optional<Attempt> Push(const Snapshot& snapshot, size_t identity, const std::string& path);
  // Families held back are tried again with the next push.
  void LiftQuarantine() {
    quarantine_.LiftAll();
    format_.Lift();
    trailer_on_ = true;
  }

  // Series of the identity that do not reach the gateway: since it refuses them, and since the group is too large.
  struct Missing {
    size_t quarantined = 0;
    size_t dropped = 0;
  };
  [[nodiscard]] Missing CountMissing(const Snapshot& snapshot, size_t identity, const std::string& path) const;
  // Forgets groups that are not among these.
  template <class Groups>
  void KeepOnly(const Groups& groups) {
    quarantine_.KeepOnly(groups);
    size_limit_.KeepOnly(groups);
  }

 private:
  // A refused family and the gateway's words.
  using Offenders = std::vector<std::pair<std::string, std::string>>;

  void TakeFormat();
  bool IsToBeSentAsText(const Attempt& attempt);
  bool Render(const Snapshot& snapshot, size_t identity, const std::string& path, const FamilyNames& held);
  static Offenders Ours(const std::vector<Refusal::Offence>& offences, const Snapshot& snapshot, size_t identity,
                        const FamilyNames& held);
  // Gives how it ended if that is not: found.
  std::optional<Attempt> FindByHalves(const Snapshot& snapshot, size_t identity, const std::string& path,
                                      const FamilyNames& held, const Attempt& refused, Offenders& found);
  void RefuseTrailer(const std::string& reason);
  std::optional<Attempt> PushWhatIsTaken(const Snapshot& snapshot, size_t identity, const std::string& path);
  void TellNewlyHeld(const std::string& path) const;
  void HoldBack(const std::string& path, const Offenders& offenders, FamilyNames& held, FamilyNames& due);

  const Options options_;
  PushFormat format_;
  GroupRenderer renderer_;      // in that format, as trailer_ is
  std::string trailer_family_;  // empty without a trailer
  Snapshot trailer_snapshot_;
  std::string trailer_;
  bool trailer_on_ = true;
  bool trailer_refusal_told_ = false;
  bool family_taken_told_ = false;  // that a program has a metric of the trailer's name
  std::chrono::steady_clock::time_point trailer_retry_at_{};
  std::string body_;  // kept for its memory
  std::vector<FamilySize> families_;
  Quarantine quarantine_;
  Offenders newly_held_;  // with this push of this group
  SizeLimit size_limit_;
};

}  // namespace persia::agent
