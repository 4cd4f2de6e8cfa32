#include "sink/group_sender.h"

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

// PUTs of one group in one push. Each that is refused takes one family out at least; most take out all.
constexpr int kMostPuts = 16;
// Requests to find refused families by halves; what they did not find is left to the next push.
constexpr int kMostProbes = 48;
// Of a log line about several families: about so much of it, and of each reason its first and its last words.
constexpr size_t kLongestList = 3000;
constexpr size_t kReasonEnd = 60;
// Go's reader of delimited protobuf takes messages up to this size unless it is told otherwise.
constexpr size_t kLargestMessage = 4 << 20;

}  // namespace

GroupSender::GroupSender(Options options)
    : options_(std::move(options)),
      format_(options_.format, options_.quarantine_retry),
      renderer_(format_.current()),
      quarantine_(options_.quarantine_retry),
      size_limit_(options_.max_push_bytes) {}

void GroupSender::set_trailer(Snapshot trailer) {
  trailer_snapshot_ = std::move(trailer);
  trailer_family_ = trailer_snapshot_.layout->families.front().name;
  GroupRenderer(renderer_.format()).Render(trailer_snapshot_, 0, trailer_);
}

void GroupSender::TakeFormat() {
  if (renderer_.format() == format_.current()) return;
  renderer_.set_format(format_.current());
  if (trailer_snapshot_.layout != nullptr) set_trailer(std::move(trailer_snapshot_));
}

void GroupSender::LearnFormat() {
  if (format_.ask(options_.now())) format_.Answered(options_.is_push_gateway(), options_.now());
}

// What became of protobuf that was put to a trial. True: the same is to be sent as text, now.
bool GroupSender::IsToBeSentAsText(const Attempt& attempt) {
  if (attempt.result == PushResult::kUnreachable) format_.Lost();
  if (!format_.on_trial()) return false;
  switch (attempt.result) {
    case PushResult::kSuccess:
      if (!attempt.new_connection) return false;
      format_.Answered(options_.is_push_gateway(), options_.now());
      return !format_.on_trial();
    case PushResult::kRejected:
      // A 400 is about a family, as a rule. Who is not let in is not let in with text.
      return attempt.status != 400 && attempt.status != 401 && attempt.status != 403 && format_.GiveUpProtobuf(options_.now());
    case PushResult::kServerError:
      // Something on the way may not know what to do with it. Of the others a gateway says what it says of text.
      if (attempt.status != 429 && attempt.status != 503) format_.GiveUpProtobuf(options_.now());
      return false;
    default:
      return false;
  }
}

std::optional<Attempt> GroupSender::Push(const Snapshot& snapshot, size_t identity, const std::string& path) {
  newly_held_.clear();
  std::optional<Attempt> attempt = PushWhatIsTaken(snapshot, identity, path);
  TellNewlyHeld(path);
  return attempt;
}

std::optional<Attempt> GroupSender::PushWhatIsTaken(const Snapshot& snapshot, size_t identity, const std::string& path) {
  FamilyNames due;  // sent again, for the gateway may have changed its mind
  FamilyNames held = quarantine_.HeldBack(path, options_.now(), due);
  if (!trailer_family_.empty() && CountShown(snapshot, identity, trailer_family_) > 0) {
    held.insert(trailer_family_);
    if (!std::exchange(family_taken_told_, true)) {
      options_.log.warn("push.quarantine", "a metric of " + path + " is named \"" + trailer_family_ +
                                               "\", as the agent's own in each group: it is not pushed, rename it");
    }
  }
  if (!trailer_on_ && options_.now() >= trailer_retry_at_) trailer_on_ = true;
  Attempt attempt;
  for (int puts = 0; puts < kMostPuts; ++puts) {
    if (!Render(snapshot, identity, path, held)) return std::nullopt;
    Refusal refusal(options_.redact);
    attempt = options_.send("PUT", path, renderer_.format(), body_, refusal);
    if (IsToBeSentAsText(attempt)) continue;
    if (!attempt.is_refusal()) break;
    if (renderer_.format() != format_.current()) continue;  // protobuf at which the connection was closed
    const std::vector<Refusal::Offence> offences = refusal.Finish();
    Offenders offenders = Ours(offences, snapshot, identity, held);
    if (trailer_on_ && !trailer_family_.empty()) {
      const auto named = std::find_if(offences.begin(), offences.end(), [&](const Refusal::Offence& offence) {
        return std::find(offence.families.begin(), offence.families.end(), trailer_family_) != offence.families.end();
      });
      if (named != offences.end()) {
        RefuseTrailer(named->reason);
        if (offenders.empty()) continue;
      }
    }
    if (offenders.empty() && format_.GiveUpProtobuf(options_.now())) continue;
    if (offenders.empty() && !due.empty() && !attempt.closed_without_answer) {
      for (const std::string& family : due) offenders.emplace_back(family, attempt.error);
    }
    std::optional<Attempt> ended;
    if (offenders.empty()) ended = FindByHalves(snapshot, identity, path, held, attempt, offenders);
    HoldBack(path, offenders, held, due);
    if (ended) return ended;
  }
  if (attempt.result == PushResult::kSuccess) {
    if (trailer_on_ && std::exchange(trailer_refusal_told_, false)) {
      options_.log.note("push.quarantine", "the gateway takes \"" + trailer_family_ + "\" again");
    }
    for (const std::string& family : due) {
      quarantine_.Lift(path, family);
      options_.log.note("push.quarantine", "the gateway takes \"" + family + "\" of " + path + " again");
    }
  }
  return attempt;
}

// Writes body_, in the format of the hour, and without the families that make it too large. False if there is nothing to send.
bool GroupSender::Render(const Snapshot& snapshot, size_t identity, const std::string& path, const FamilyNames& held) {
  TakeFormat();
  renderer_.Render(snapshot, identity, body_, held, &families_);
  const std::string_view trailer = trailer_on_ ? std::string_view(trailer_) : std::string_view();
  if (size_limit_.Concerns(path, body_.size())) {
    std::vector<FamilySize> added;
    FamilyNames out = size_limit_.Choose(path, families_, added);
    for (const FamilySize& family : added) {
      options_.log.warn("push.too_large", "what is pushed to " + path + " is larger than max_push_bytes, " +
                                              std::to_string(size_limit_.most_bytes()) + ": its largest family, \"" +
                                              family.family->name + "\" (" + std::to_string(family.series) + " series, " +
                                              std::to_string(family.bytes) +
                                              " bytes), is left out; give it fewer label values, or raise max_push_bytes");
    }
    out.insert(held.begin(), held.end());
    renderer_.Render(snapshot, identity, body_, out, &families_);
    if (body_.empty() && trailer.empty()) return false;
  } else if (body_.empty() && (held.empty() || trailer.empty())) {
    return false;
  }
  const auto too_large = [](const FamilySize& family) { return family.bytes > kLargestMessage; };
  if (std::any_of(families_.begin(), families_.end(), too_large) && format_.GiveUpProtobuf(options_.now())) {
    return Render(snapshot, identity, path, held);
  }
  body_ += trailer;
  return true;
}

// Which of the families that the gateway names are in this group.
GroupSender::Offenders GroupSender::Ours(const std::vector<Refusal::Offence>& offences, const Snapshot& snapshot,
                                         size_t identity, const FamilyNames& held) {
  Offenders ours;
  for (const Refusal::Offence& offence : offences) {
    // Of a histogram and of a number with a name like one of its lines', the number goes: its name is the longer one.
    std::vector<std::string> names = offence.families;
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return !held.contains(name) && CountShown(snapshot, identity, name) > 0;
    });
    if (found != names.end()) ours.emplace_back(*found, offence.reason);
  }
  return ours;
}

std::optional<Attempt> GroupSender::FindByHalves(const Snapshot& snapshot, size_t identity, const std::string& path,
                                                 const FamilyNames& held, const Attempt& refused, Offenders& found) {
  Refusal unread;
  // Whoever refuses a group without our families does not refuse it for them.
  const bool with_trailer = trailer_on_ && !trailer_.empty();
  Attempt nothing = options_.send("POST", path, renderer_.format(), with_trailer ? trailer_ : "", unread);
  if (nothing.is_refusal() && with_trailer) {
    const Attempt trailer = nothing;
    nothing = options_.send("POST", path, renderer_.format(), "", unread);
    if (nothing.result == PushResult::kSuccess) {
      // A gateway that was killed closes connections, too.
      const bool again = !trailer.closed_without_answer ||
                         options_.send("POST", path, renderer_.format(), trailer_, unread).closed_without_answer;
      if (!again) return refused;
      RefuseTrailer(trailer.error);
      return std::nullopt;
    }
  }
  if (nothing.result == PushResult::kRejected) return refused;
  if (nothing.result != PushResult::kSuccess) return nothing;

  renderer_.Render(snapshot, identity, body_, held, &families_);
  using Part = std::vector<std::string>;
  Part all;
  for (const FamilySize& family : families_) all.push_back(family.family->name);
  const FamilyNames every_family(all.begin(), all.end());
  const auto probe = [&](const Part& part) {
    FamilyNames others = every_family;
    for (const std::string& family : part) others.erase(family);
    others.insert(held.begin(), held.end());
    renderer_.Render(snapshot, identity, body_, others);
    return options_.send("POST", path, renderer_.format(), body_, unread);
  };
  std::vector<std::pair<Part, Attempt>> refused_parts{{std::move(all), refused}};
  int probes = 0;
  while (!refused_parts.empty()) {
    const auto [part, refusal] = std::move(refused_parts.back());
    refused_parts.pop_back();
    if (part.empty()) continue;
    if (part.size() == 1) {
      if (refusal.closed_without_answer) {
        probes += 2;
        // A gateway that is killed closes connections, too: it must be alive and close this one again.
        const Attempt alive = options_.send("POST", path, renderer_.format(), "", unread);
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
      if (attempt.is_refusal()) {
        refused_parts.emplace_back(std::move(half), attempt);
      } else if (attempt.result != PushResult::kSuccess) {
        return attempt;
      }
    }
  }
  return found.empty() ? std::optional(refused) : std::nullopt;
}

// Whoever else pushes to the gateway may have the name with another type; our values do not depend on it.
void GroupSender::RefuseTrailer(const std::string& reason) {
  trailer_on_ = false;
  trailer_retry_at_ = options_.now() + options_.quarantine_retry;
  if (std::exchange(trailer_refusal_told_, true)) return;
  options_.log.warn("push.quarantine", "the gateway refuses \"" + trailer_family_ + "\" of the agent itself: " + reason +
                                           "; groups are pushed without it, and another agent that pushes the same ones is not "
                                           "noticed: find who else pushes a metric of that name, and delete its group");
}

void GroupSender::HoldBack(const std::string& path, const Offenders& offenders, FamilyNames& held, FamilyNames& due) {
  for (const auto& [family, reason] : offenders) {
    held.insert(family);
    due.erase(family);
    if (quarantine_.Hold(path, family, options_.now())) newly_held_.emplace_back(family, reason);
  }
}

// One line, however many there are: the log shows but a few of one kind.
void GroupSender::TellNewlyHeld(const std::string& path) const {
  if (newly_held_.empty()) return;
  const size_t count = newly_held_.size();
  std::string which = '"' + newly_held_.front().first + "\" of " + path + ": " + newly_held_.front().second;
  if (count > 1) {
    which = std::to_string(count) + " metrics of " + path + ": ";
    size_t listed = 0;
    for (; listed < count && which.size() < kLongestList; ++listed) {
      const auto& [family, reason] = newly_held_[listed];
      const bool is_long = reason.size() > 2 * kReasonEnd;
      which += (listed > 0 ? ", \"" : "\"") + family + "\" (" +
               (is_long ? reason.substr(0, kReasonEnd) + " ... " + reason.substr(reason.size() - kReasonEnd) : reason) + ')';
    }
    if (listed < count) which += " and " + std::to_string(count - listed) + " more";
  }
  options_.log.warn("push.quarantine", "the gateway refuses " + which + (count > 1 ? "; these are" : "; this metric is") +
                                           " held back and all else is pushed: rename it, or delete the group that holds its "
                                           "name (it is tried again hourly and at a reload)");
}

GroupSender::Missing GroupSender::CountMissing(const Snapshot& snapshot, size_t identity, const std::string& path) const {
  Missing missing;
  for (const std::string& family : quarantine_.Of(path)) missing.quarantined += CountShown(snapshot, identity, family);
  if (!trailer_family_.empty()) missing.quarantined += CountShown(snapshot, identity, trailer_family_);
  for (const std::string& family : size_limit_.Of(path)) missing.dropped += CountShown(snapshot, identity, family);
  return missing;
}

}  // namespace persia::agent
