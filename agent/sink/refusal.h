// Finds in a gateway's answer of status 400 which families it refuses.
//
// An answer names one series a line, all that clash with what the gateway holds, and so may be far larger than what was pushed:
// it is read piece by piece, and no more is kept of it than its families.
//
//   Refusal refusal;
//   request.receive = [&](int status, std::string_view piece) { return refusal.Add(piece); };
//   ...
//   for (const Refusal::Offence& offence : refusal.Finish()) ...
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

class Refusal {
 public:
  // Takes secrets out of a text: an answer may hold what it answers to. It is given lines as they came, before they are cut.
  using Redact = std::function<void(std::string&)>;

  explicit Refusal(Redact redact = {}) : redact_(std::move(redact)) {}

  struct Offence {
    // Which of them is ours is for the caller to find out. Two where one family's suffixed name is the other's.
    std::vector<std::string> families;
    std::string reason;  // the gateway's words about the first such series, not too long
  };

  // False: that was enough, no answer is so long.
  bool Add(std::string_view piece);
  // Each family, or pair of them, once, in the answer's order, and not more than 10,000. Empty if the answer does not say.
  std::vector<Offence> Finish();

 private:
  void EndLine();

  const Redact redact_;
  size_t read_ = 0;
  std::string line_;  // its beginning and its end, if it is long
  bool shortened_ = false;
  std::vector<Offence> offences_;
  std::set<std::vector<std::string>> known_;  // the families of each
};

}  // namespace persia::agent
