// Sends one identity's group to the gateway, without the families that the gateway refuses or that make the group too large.
//
// If one series of a group is invalid, a PushGateway refuses the whole group. The sender holds back the families that the
// answer names, and sends the rest immediately. If the answer names none, or the gateway closes the connection without an
// answer although it accepts an empty group, the sender finds the families by bisection. These requests are POSTs, which
// replace families and not the group, so that no family on the gateway disappears meanwhile. If a server refuses a group for
// its size (status 413), the sender leaves out the largest families until the rest is accepted, and tries all again hourly.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/exposition_plan.h"
#include "format/group_renderer.h"
#include "model/snapshot.h"
#include "push/gateway_connection.h"
#include "push/held_families.h"
#include "push/push_format.h"
#include "push/refusal.h"

namespace persia::agent {

class GroupSender {
 public:
  struct Options {
    PushFormat::Choice format = PushFormat::Choice::kText;
    size_t max_push_bytes = 64 << 20;                                    // of a group
    std::chrono::milliseconds quarantine_retry = std::chrono::hours(1);  // and of a size that was refused
  };
  struct Group {
    const Snapshot& snapshot;
    size_t identity;
    std::string path;
  };

  // `connection` outlives it.
  GroupSender(GatewayConnection& connection, Options options);

  // Nothing if the identity has no series now. After a success, the families that are held back may be missing.
  std::optional<Attempt> Push(const Group& group);
  // Queries a gateway that accepted a push whether it reads protobuf, if that is not known.
  void LearnFormat();
  // Of the next push.
  [[nodiscard]] ExpositionFormat format() const { return format_.current(); }
  // Families held back are tried again with the next push.
  void LiftQuarantine();

  // Series of the identity that do not reach the gateway: refused by it, and left out of a group that is too large.
  struct Missing {
    size_t quarantined = 0;
    size_t dropped = 0;
  };
  [[nodiscard]] Missing CountMissing(const Group& group) const;
  // Forgets groups that are not among these.
  template <class Groups>
  void KeepOnly(const Groups& groups) {
    quarantine_.KeepOnly(groups);
    size_limit_.KeepOnly(groups);
  }

 private:
  // Refused families, each with the gateway's reason.
  using Refused = std::vector<std::pair<std::string, std::string>>;

  bool MustResendAsText(const Attempt& attempt);
  bool Render(const Group& group, const FamilyNames& held);
  std::optional<Attempt> PushAccepted(const Group& group);
  // These two return the result of the push, or nothing if `found` has families to hold back before the next attempt.
  std::optional<Attempt> FindRefused(const Group& group, const FamilyNames& held, const Attempt& refused, Refused& found);
  std::optional<Attempt> Bisect(const Group& group, const FamilyNames& held, const Attempt& refused, Refused& found);
  void HoldBack(const Group& group, const Refused& refused, FamilyNames& held, FamilyNames& due);
  void LogNewlyHeld(const Group& group) const;
  void Warn(std::string_view event, std::string message) const;

  GatewayConnection& connection_;
  const Options options_;
  PushFormat format_;
  GroupRenderer renderer_;  // in that format
  std::string body_;        // kept for its memory
  std::vector<FamilySize> families_;
  Quarantine quarantine_;
  Refused newly_held_;  // by this push of this group
  SizeLimit size_limit_;
};

}  // namespace persia::agent
