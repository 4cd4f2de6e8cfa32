// What a PushGateway 1.5.1 says, as tried (one of these, or several, each on a line that begins with "* "):
//
//   collected metric "NAME" { label:<name:"a" value:"1" > gauge:<value:1 > } is not a COUNTER
//   collected metric "NAME" { ... } was collected before with the same name and label values
//   collected metric "NAME" { ... } has a label with an invalid name: __a
//   collected histogram or summary named "NAME" collides with previously collected metric named "NAME_count"
//   collected metric named "NAME_sum" collides with previously collected histogram named "NAME"
//   gathered metric family NAME has type COUNTER but should have GAUGE
//   gathered metric family NAME has help "..." but should have "..."
//
// Values of labels are quoted, with their own quotes and line ends escaped, and stand behind the first brace.
#include "sink/refusal.h"

#include <algorithm>

namespace persia::agent {
namespace {

constexpr size_t kMostBytes = 256 << 20;
// Of a line, so much of its beginning and of its end is kept.
constexpr size_t kHead = 320;
constexpr size_t kTail = 160;

std::string UpTo(std::string_view text, char end) { return std::string(text.substr(0, text.find(end))); }

std::vector<std::string> FamiliesIn(std::string_view line) {
  static constexpr std::string_view kGathered = "gathered metric family ";
  static constexpr std::string_view kCollected = "collected metric \"";
  static constexpr std::string_view kNamed = " named \"";
  const std::string_view said = line.substr(0, line.find('{'));
  if (const size_t at = said.find(kGathered); at != std::string_view::npos) {
    return {UpTo(said.substr(at + kGathered.size()), ' ')};
  }
  if (const size_t at = said.find(kCollected); at != std::string_view::npos) {
    return {UpTo(said.substr(at + kCollected.size()), '"')};
  }
  std::vector<std::string> families;
  if (said.find("collected ") == std::string_view::npos) return families;
  for (size_t at = said.find(kNamed); at != std::string_view::npos; at = said.find(kNamed, at + 1)) {
    families.push_back(UpTo(said.substr(at + kNamed.size()), '"'));
  }
  return families;
}

}  // namespace

bool Refusal::Add(std::string_view piece) {
  read_ += piece.size();
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() > 8 * (kHead + kTail)) {
      line_.erase(kHead, line_.size() - kHead - kTail);
      shortened_ = true;
    }
    if (end == std::string_view::npos) break;
    EndLine();
    piece.remove_prefix(end + 1);
  }
  return read_ < kMostBytes;
}

std::vector<Refusal::Offence> Refusal::Finish() {
  EndLine();
  return std::move(offences_);
}

void Refusal::EndLine() {
  std::string line = std::move(line_);
  line_.clear();
  if (shortened_ || line.size() > kHead + kTail) {
    line = line.substr(0, kHead) + " ... " + line.substr(line.size() - kTail);
  }
  shortened_ = false;
  std::vector<std::string> families = FamiliesIn(line);
  const auto known = [&](const Offence& offence) { return offence.families == families; };
  if (families.empty() || std::any_of(offences_.begin(), offences_.end(), known)) return;
  line.erase(0, std::min(line.find("collected "), line.find("gathered ")));
  offences_.push_back({.families = std::move(families), .reason = std::move(line)});
}

}  // namespace persia::agent
