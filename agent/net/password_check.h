// Checks passwords against bcrypt hashes. The adapter of libcrypt.
//
//   PasswordCheck check({{"prometheus", "$2y$10$..."}});   // REQUIRES: WhyUnusable is empty for each hash
//   check.Check(user, password) == PasswordCheck::Verdict::kRight
//
// bcrypt is slow by design, so its use is bounded. The last right password of each user is kept as a cheap salted hash, so that
// a scrape does not compute bcrypt. A few bcrypt hashes are computed in parallel, a few more callers wait, and others get
// kBusy. An unknown user costs as much as the known user with the highest cost. Passwords are not kept, and the memory of the
// computation is cleared. Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"

namespace persia::agent {

// Parses the header `Authorization: Basic dXNlcjpwYXNzd29yZA==` (RFC 7617).
struct BasicAuthorization {
  std::string user;
  std::string password;
};

// Null if the header's value has another scheme or is malformed.
std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value);

class PasswordCheck {
 public:
  enum class Verdict { kRight, kWrong, kBusy };

  static constexpr int kMaxCost = 14;  // 2^14 rounds take more than a second
  static constexpr size_t kMaxPasswordSize = 512;

  // Why a hash cannot be used, without repeating it; empty if it can.
  static std::string WhyUnusable(std::string_view hash);

  // A caller that has waited this long for its turn is turned away.
  static constexpr std::chrono::milliseconds kMaxWait{2000};

  explicit PasswordCheck(std::map<std::string, std::string> hashes, std::chrono::milliseconds max_wait = kMaxWait);

  Verdict Check(const std::string& user, std::string_view password);

 private:
  static constexpr int kMaxComputing = 2;
  static constexpr int kMaxWaiting = 8;

  // A permit to compute bcrypt. False if there are too many callers, or none becomes free in time.
  bool AcquirePermit();
  void ReleasePermit();
  std::string CachedHash(const std::string& user);

  const std::map<std::string, std::string> hashes_;  // by user
  const std::chrono::milliseconds max_wait_;
  const std::string unknown_user_hash_;  // of the highest cost in hashes_
  const std::string unknown_user_cached_hash_;
  Mutex mutex_;
  CondVar released_;
  std::map<std::string, std::string> cached_hashes_ PERSIA_GUARDED_BY(mutex_);  // by user, of the last right password
  int computing_ PERSIA_GUARDED_BY(mutex_) = 0;
  int waiting_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent
