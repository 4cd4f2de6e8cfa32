// The answers of a PushGateway 1.5.1, as tested: one of these lines, or several, each after "* ":
//
//   collected metric "NAME" { label:<name:"a" value:"1" > gauge:<value:1 > } is not a COUNTER
//   collected metric "NAME" { ... } was collected before with the same name and label values
//   collected metric "NAME" { ... } has a label with an invalid name: __a
//   collected histogram or summary named "NAME" collides with previously collected metric named "NAME_count"
//   collected metric named "NAME_sum" collides with previously collected histogram named "NAME"
//   gathered metric family NAME has type COUNTER but should have GAUGE
//   gathered metric family NAME has help "..." but should have "..."
//
// Label values are quoted, with their own quotes and line ends escaped, and come after the first brace.
// PushGateway 1.11.0 closes the connection instead; if the answer is long, after its first part (prometheus/pushgateway#766).
#include "push/refusal.h"

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

constexpr size_t kMostAnswerBytes = 256 << 20;
// The bytes of a line's start and of its end that are kept.
constexpr size_t kHead = 320;
constexpr size_t kTail = 160;
// While a line is read, more of its end is kept, since only a whole secret is found. Servers accept no longer header than this.
constexpr size_t kSecret = 16 << 10;
constexpr size_t kMostOffences = 10'000;

// The name that ends before `end`; nothing if the line ends within it.
std::vector<std::string> NameUpTo(std::string_view text, char end) {
  const size_t size = text.find(end);
  if (size == std::string_view::npos) return {};
  return {std::string(text.substr(0, size))};
}

std::vector<std::string> FamiliesIn(std::string_view line) {
  static constexpr std::string_view kGathered = "gathered metric family ";
  static constexpr std::string_view kCollected = "collected metric \"";
  static constexpr std::string_view kNamed = " named \"";
  const std::string_view text = line.substr(0, line.find('{'));
  if (const size_t at = text.find(kGathered); at != std::string_view::npos)
    return NameUpTo(text.substr(at + kGathered.size()), ' ');
  if (const size_t at = text.find(kCollected); at != std::string_view::npos)
    return NameUpTo(text.substr(at + kCollected.size()), '"');
  std::vector<std::string> families;
  if (text.find("collected ") == std::string_view::npos) return families;
  for (size_t at = text.find(kNamed); at != std::string_view::npos; at = text.find(kNamed, at + 1))
    for (std::string& name : NameUpTo(text.substr(at + kNamed.size()), '"')) families.push_back(std::move(name));
  return families;
}

}  // namespace

bool Refusal::Add(std::string_view piece) {
  read_ += piece.size();
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() > kHead + 2 * kSecret) {
      if (redact_) redact_(line_);
      if (line_.size() > kHead + kSecret) line_.erase(kHead, line_.size() - kHead - kSecret);
      shortened_ = true;
    }
    if (end == std::string_view::npos) break;
    EndLine();
    piece.remove_prefix(end + 1);
  }
  return read_ < kMostAnswerBytes && offences_.size() < kMostOffences;
}

std::vector<Refusal::Offence> Refusal::Finish() {
  // An unfinished line may end in the first half of a secret.
  if (redact_ && !line_.empty()) {
    redact_(line_);
    const size_t word = line_.find_last_of(" \"");
    line_.resize(word == std::string::npos ? 0 : word);
  }
  EndLine();
  return std::move(offences_);
}

void Refusal::EndLine() {
  std::string line = std::move(line_);
  line_.clear();
  const bool shortened = std::exchange(shortened_, false);
  std::vector<std::string> families = FamiliesIn(std::string_view(line).substr(0, kHead));
  if (families.empty() || offences_.size() >= kMostOffences || !known_.insert(families).second) return;
  if (redact_) redact_(line);
  if ((shortened && line.size() > kTail) || line.size() > kHead + kTail)
    line = line.substr(0, kHead) + " ... " + line.substr(line.size() - kTail);
  line.erase(0, std::min(line.find("collected "), line.find("gathered ")));
  offences_.push_back({.families = std::move(families), .reason = std::move(line)});
}

}  // namespace persia::agent
