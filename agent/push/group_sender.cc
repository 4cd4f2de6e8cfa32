#include "push/group_sender.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"

namespace persia::agent {
namespace {

// PUTs of one group in one push. Each that is refused takes out one family at least; most take out all.
constexpr int kMostPuts = 16;
// Requests of one bisection; the next push continues the search.
constexpr int kMostProbes = 48;
// Limits of a log line about several families: its size in bytes, and those of the start and the end of each reason.
constexpr size_t kLongestList = 3000;
constexpr size_t kReasonEnd = 60;
// Go's reader of delimited protobuf accepts messages up to this size by default.
constexpr size_t kLargestMessage = 4 << 20;
constexpr int kTooLarge = 413;

// Series of the family that the group's identity shows in this snapshot.
size_t CountShown(const GroupSender::Group& group, std::string_view family) {
  size_t shown = 0;
  for (const FamilyLayout& named : FamiliesNamed(*group.snapshot.layout, family)) {
    shown += static_cast<size_t>(std::ranges::count_if(
        named.series,
        [&](const SeriesLayout& series) {
          return series.identity == group.identity && !IsAbsent(group.snapshot.values[series.first_value]);
        }));
  }
  return shown;
}

}  // namespace

GroupSender::GroupSender(GatewayConnection& connection, Options options)
    : connection_(connection),
      options_(std::move(options)),
      format_(options_.format, options_.quarantine_retry),
      renderer_(format_.current()),
      quarantine_(options_.quarantine_retry),
      size_limit_(options_.max_push_bytes, options_.quarantine_retry) {}

void GroupSender::LearnFormat() {
  if (format_.MustAsk(connection_.Now())) format_.Answered(connection_.IsPushGateway(), connection_.Now());
}

void GroupSender::LiftQuarantine() {
  quarantine_.LiftAll();
  size_limit_.Lift();
  format_.Lift();
}

// Judges protobuf that is on trial.
bool GroupSender::MustResendAsText(const Attempt& attempt) {
  if (attempt.result == PushResult::kUnreachable) format_.Lost();
  if (!format_.on_trial()) return false;
  switch (attempt.result) {
    case PushResult::kSuccess:
      if (!attempt.new_connection) return false;
      format_.Answered(connection_.IsPushGateway(), connection_.Now());
      return !format_.on_trial();
    case PushResult::kRejected:
      // A 400 is usually about a family; 401 and 403 are about credentials, 413 about the size, in either format.
      return attempt.status != 400 && attempt.status != 401 && attempt.status != 403 && attempt.status != kTooLarge &&
             format_.GiveUpProtobuf(connection_.Now());
    case PushResult::kServerError:
      // A proxy may fail on protobuf; 429 and 503 are about load, in either format.
      if (attempt.status != 429 && attempt.status != 503) format_.GiveUpProtobuf(connection_.Now());
      return false;
    default:
      return false;
  }
}

std::optional<Attempt> GroupSender::Push(const Group& group) {
  newly_held_.clear();
  std::optional<Attempt> attempt = PushAccepted(group);
  LogNewlyHeld(group);
  return attempt;
}

std::optional<Attempt> GroupSender::PushAccepted(const Group& group) {
  FamilyNames due;  // sent again, since the gateway may accept them now
  FamilyNames held = quarantine_.HeldBack(group.path, connection_.Now(), due);
  size_limit_.LiftIfDue(connection_.Now());
  Attempt attempt;
  for (int puts = 0; puts < kMostPuts; ++puts) {
    if (!Render(group, held)) return std::nullopt;
    Refusal refusal([this](std::string& text) { connection_.Redact(text); });
    attempt = connection_.Send("PUT", group.path, renderer_.format(), body_, refusal);
    if (MustResendAsText(attempt)) continue;
    if (attempt.status == kTooLarge && size_limit_.Lower(body_.size(), connection_.Now())) continue;
    if (!attempt.is_refusal()) break;
    if (renderer_.format() != format_.current()) continue;  // protobuf at which the connection was closed
    Refused refused;
    for (Refusal::Offence& offence : refusal.Finish()) {
      std::vector<std::string>& names = offence.families;
      // Of a histogram and a gauge that is named like one of its lines, the gauge is held back: its name is the longer one.
      std::stable_sort(
          names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
      const auto ours = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return !held.contains(name) && CountShown(group, name) > 0;
      });
      if (ours != names.end()) refused.emplace_back(*ours, offence.reason);
    }
    if (refused.empty() && format_.GiveUpProtobuf(connection_.Now())) continue;
    if (refused.empty() && !attempt.closed_without_answer)
      for (const std::string& family : due) refused.emplace_back(family, attempt.error);
    std::optional<Attempt> ended;
    if (refused.empty()) ended = FindRefused(group, held, attempt, refused);
    HoldBack(group, refused, held, due);
    if (ended) return ended;
  }
  if (attempt.result == PushResult::kSuccess) {
    for (const std::string& family : due) {
      quarantine_.Lift(group.path, family);
      LogInfo("push.quarantine", "the gateway accepts \"" + family + "\" of " + group.path + " again");
    }
  }
  return attempt;
}

// Writes body_ in the current format, without the families that make it too large. False if there is nothing to send.
bool GroupSender::Render(const Group& group, const FamilyNames& held) {
  if (renderer_.format() != format_.current()) renderer_.set_format(format_.current());
  renderer_.Render(group.snapshot, group.identity, body_, held, &families_);
  if (size_limit_.Applies(group.path, body_.size())) {
    std::vector<FamilySize> newly_out;
    FamilyNames out = size_limit_.Choose(group.path, families_, newly_out);
    for (const FamilySize& family : newly_out) {
      const bool lowered = size_limit_.is_lowered();
      Warn("push.too_large", "the group " + group.path + " is larger than " +
                                 (lowered ? "the gateway or a proxy accepts (status 413), tried with " : "") +
                                 std::to_string(size_limit_.most_bytes()) + " bytes" + ": its largest family, \"" +
                                 family.family->name + "\" (" + std::to_string(family.series) + " series, " +
                                 std::to_string(family.bytes) + " bytes), is left out; give it fewer label values" +
                                 (lowered ? ", or raise the limit of that server" : ""));
    }
    out.insert(held.begin(), held.end());
    renderer_.Render(group.snapshot, group.identity, body_, out, &families_);
  } else if (body_.empty() && held.empty()) {
    return false;  // if all families are held back, an empty push removes the values that the group had before
  }
  const auto too_large = [](const FamilySize& family) { return family.bytes > kLargestMessage; };
  if (std::any_of(families_.begin(), families_.end(), too_large) && format_.GiveUpProtobuf(connection_.Now()))
    return Render(group, held);
  return true;
}

// The answer names no family of the group.
std::optional<Attempt> GroupSender::FindRefused(const Group& group, const FamilyNames& held, const Attempt& refused,
                                                Refused& found) {
  // If the gateway refuses the group without its families, the families are not the reason.
  Refusal unread;
  Attempt empty = connection_.Send("POST", group.path, renderer_.format(), "", unread);
  if (empty.result == PushResult::kRejected) return refused;
  if (empty.result != PushResult::kSuccess) return empty;
  return Bisect(group, held, refused, found);
}

std::optional<Attempt> GroupSender::Bisect(const Group& group, const FamilyNames& held, const Attempt& refused,
                                           Refused& found) {
  renderer_.Render(group.snapshot, group.identity, body_, held, &families_);
  using Part = std::vector<std::string>;
  Part all;
  for (const FamilySize& family : families_) all.push_back(family.family->name);
  const FamilyNames every_family(all.begin(), all.end());
  const auto probe = [&](const Part& part) {
    FamilyNames others = every_family;
    for (const std::string& family : part) others.erase(family);
    others.insert(held.begin(), held.end());
    renderer_.Render(group.snapshot, group.identity, body_, others);
    Refusal unread;
    return connection_.Send("POST", group.path, renderer_.format(), body_, unread);
  };
  std::vector<std::pair<Part, Attempt>> refused_parts{{std::move(all), refused}};
  int probes = 0;
  while (!refused_parts.empty()) {
    const auto [part, refusal] = std::move(refused_parts.back());
    refused_parts.pop_back();
    if (part.empty()) continue;
    if (part.size() == 1) {
      if (refusal.closed_without_answer) {
        // A gateway that is killed closes connections, too: it must be alive and close this one again.
        probes += 2;
        const Attempt alive = probe({});
        if (alive.result != PushResult::kSuccess) return alive;
        const Attempt again = probe(part);
        if (again.result == PushResult::kSuccess) continue;
        if (!again.is_refusal()) return again;
      }
      found.emplace_back(part.front(), refusal.error);
      continue;
    }
    const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
    for (Part half : {Part(part.begin(), middle), Part(middle, part.end())}) {
      if (++probes > kMostProbes) return Attempt{PushResult::kRejected, false, refused.error, refused.status};
      const Attempt attempt = probe(half);
      if (attempt.is_refusal())
        refused_parts.emplace_back(std::move(half), attempt);
      else if (attempt.result != PushResult::kSuccess)
        return attempt;
    }
  }
  return found.empty() ? std::optional(refused) : std::nullopt;
}

void GroupSender::HoldBack(const Group& group, const Refused& refused, FamilyNames& held, FamilyNames& due) {
  for (const auto& [family, reason] : refused) {
    held.insert(family);
    due.erase(family);
    if (quarantine_.Hold(group.path, family, connection_.Now())) newly_held_.emplace_back(family, reason);
  }
}

// One line for all, since the log limits the lines of an event.
void GroupSender::LogNewlyHeld(const Group& group) const {
  if (newly_held_.empty()) return;
  const size_t count = newly_held_.size();
  std::string which = '"' + newly_held_.front().first + "\" of " + group.path + ": " + newly_held_.front().second;
  if (count > 1) {
    which = std::to_string(count) + " metrics of " + group.path + ": ";
    size_t listed = 0;
    for (; listed < count && which.size() < kLongestList; ++listed) {
      const auto& [family, reason] = newly_held_[listed];
      const bool is_long = reason.size() > 2 * kReasonEnd;
      which += (listed > 0 ? ", \"" : "\"") + family + "\" (" +
               (is_long ? reason.substr(0, kReasonEnd) + " ... " + reason.substr(reason.size() - kReasonEnd) : reason) + ')';
    }
    if (listed < count) which += " and " + std::to_string(count - listed) + " more";
  }
  Warn("push.quarantine", "the gateway refuses " + which + (count > 1 ? "; these are" : "; this metric is") +
                              " held back, all others are pushed: rename it, or delete the group that has its name (it is "
                              "tried again hourly and at a reload)");
}

// The text may quote the gateway.
void GroupSender::Warn(std::string_view event, std::string message) const {
  connection_.Redact(message);
  LogWarning(event, message);
}

GroupSender::Missing GroupSender::CountMissing(const Group& group) const {
  Missing missing;
  for (const std::string& family : quarantine_.All(group.path)) missing.quarantined += CountShown(group, family);
  for (const std::string& family : size_limit_.LeftOut(group.path)) missing.dropped += CountShown(group, family);
  return missing;
}

}  // namespace persia::agent
