// Tells whether a password belongs to a user, by the user's bcrypt hash. The adapter of libcrypt.
//
//   PasswordCheck check({{"prometheus", "$2y$10$..."}});   // REQUIRES: WhyUnusable is empty for each hash
//   check.Check(user, password) == PasswordCheck::Verdict::kRight
//
// bcrypt is slow by intent, so what it may cost is bounded. The password that was right last is kept for each user as a cheap
// salted hash, so that a scrape does not cost a bcrypt; a few are computed at once and a few may wait, beyond that there is
// kBusy, and none of it holds up those who came before. An unknown user costs as much as the dearest known one. Passwords are
// not kept, and what they were computed in is cleared.
// Thread safety: any method, from any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

class PasswordCheck {
 public:
  enum class Verdict { kRight, kWrong, kBusy };

  static constexpr int kDearest = 14;  // as 2^14 rounds: more than a second
  static constexpr size_t kLongestPassword = 512;

  // Why a hash cannot be used, without repeating it; empty: it can.
  static std::string WhyUnusable(std::string_view hash);

  explicit PasswordCheck(std::map<std::string, std::string> hashes);

  Verdict Check(const std::string& user, std::string_view password);

 private:
  static constexpr int kAtOnce = 2;
  static constexpr int kMayWait = 8;

  struct User {
    std::string hash;
    std::string last_good;  // salted, of the cheap kind; empty: none yet. Guarded by mutex_
  };

  bool Enter();
  void Leave();

  const std::string stranger_hash_;  // as dear as the dearest
  const std::string stranger_last_;
  std::mutex mutex_;
  std::condition_variable left_;
  std::map<std::string, User> users_;  // its keys and hashes stay as they are
  int inside_ = 0;                     // guarded by mutex_
  int waiting_ = 0;                    // guarded by mutex_
};

}  // namespace persia::agent
