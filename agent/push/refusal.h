// Finds in a gateway's answer of status 400 which families it refuses.
//
// An answer has a line for each series that conflicts with one on the gateway, and so may be far larger than the push: it is
// read piece by piece, and only the families are kept.
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
  // Takes secrets out of a text, since an answer may repeat the request. It is given lines before they are shortened.
  using Redact = std::function<void(std::string&)>;

  explicit Refusal(Redact redact = {}) : redact_(std::move(redact)) {}

  struct Offence {
    // The refused family is one of them; two where one family's name is the other's with a suffix.
    std::vector<std::string> families;
    std::string reason;  // the gateway's words about the first such series, shortened
  };

  // False: the answer is too long, no more of it is read.
  bool Add(std::string_view piece);
  // Each family, or pair of them, once, in the answer's order, and at most 10,000. Empty if the answer names none.
  std::vector<Offence> Finish();

 private:
  void EndLine();

  const Redact redact_;
  size_t read_ = 0;
  std::string line_;  // only its start and its end, if it is long
  bool shortened_ = false;
  std::vector<Offence> offences_;
  std::set<std::vector<std::string>> known_;  // the families of each
};

}  // namespace persia::agent
