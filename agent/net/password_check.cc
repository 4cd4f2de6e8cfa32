#include "net/password_check.h"

#include <crypt.h>
#include <string.h>
#include <strings.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

// SHA-256 with the fewest rounds that libcrypt allows: less than a millisecond.
constexpr char kCheapKind[] = "$5$";
constexpr unsigned long kCheapRounds = 1000;
constexpr size_t kHashSize = 60;  // $2y$10$, 22 digits of salt, 31 of hash

int CostOf(std::string_view hash) { return (hash[4] - '0') * 10 + (hash[5] - '0'); }

unsigned long HighestCost(const std::map<std::string, std::string>& hashes) {
  int cost = 4;
  for (const auto& [user, hash] : hashes) cost = std::max(cost, CostOf(hash));
  return static_cast<unsigned long>(cost);
}

// `setting` is a hash or its salt. Empty if libcrypt does not accept it.
std::string Crypt(const std::string& password, const std::string& setting) {
  const auto data = std::make_unique<crypt_data>();  // too large for a small stack
  const char* const hash = crypt_r(password.c_str(), setting.c_str(), data.get());
  std::string text = hash == nullptr || hash[0] == '*' ? "" : hash;
  explicit_bzero(data.get(), sizeof(crypt_data));
  return text;
}

std::string Salt(const char* kind, unsigned long count) {
  char setting[CRYPT_GENSALT_OUTPUT_SIZE];
  return crypt_gensalt_rn(kind, count, nullptr, 0, setting, sizeof setting) == nullptr ? "" : setting;
}

// In constant time for texts of one size.
bool Same(const std::string& a, const std::string& b) {
  if (a.empty() || a.size() != b.size()) return false;
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs = differs | static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

// Clears its text when it is destroyed.
struct SecretText {
  explicit SecretText(std::string_view secret) : text(secret) {}
  ~SecretText() { explicit_bzero(text.data(), text.size()); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;

  std::string text;
};

}  // namespace

std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value) {
  static constexpr std::string_view kScheme = "Basic ";
  if (value.size() < kScheme.size() || strncasecmp(value.data(), kScheme.data(), kScheme.size()) != 0) return std::nullopt;
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  const std::optional<std::string> pair = Base64Decode(value);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return BasicAuthorization{pair->substr(0, colon), pair->substr(colon + 1)};
}

std::string PasswordCheck::WhyUnusable(std::string_view hash) {
  const bool is_bcrypt = hash.starts_with("$2y$") || hash.starts_with("$2a$") || hash.starts_with("$2b$");
  const auto is_hash_digit = [](char c) { return IsDigit(c) || (IsLetter(c) && c != '_') || c == '.' || c == '/'; };
  if (!is_bcrypt || hash.size() != kHashSize || !IsDigit(hash[4]) || !IsDigit(hash[5]) || hash[6] != '$' || CostOf(hash) < 4 ||
      !std::all_of(hash.begin() + 7, hash.end(), is_hash_digit)) {
    return "is not a bcrypt hash ($2y$, $2a$ or $2b$, 60 characters; it is not repeated here); `htpasswd -nBC 10 USER` makes "
           "one";
  }
  if (CostOf(hash) > kMaxCost) {
    return "is a bcrypt hash of cost " + std::to_string(CostOf(hash)) +
           ", with which each login takes seconds; use a cost of " + std::to_string(kMaxCost) + " at most";
  }
  // libcrypt does not accept every salt. This tries it at the lowest cost, since startup must not take seconds.
  if (Crypt("", std::string(hash).replace(4, 2, "04")).empty())
    return "is not a bcrypt hash that this system's libcrypt accepts (it is not repeated here)";
  return "";
}

PasswordCheck::PasswordCheck(std::map<std::string, std::string> hashes, std::chrono::milliseconds max_wait)
    : hashes_(std::move(hashes)),
      max_wait_(max_wait),
      unknown_user_hash_(Salt("$2y$", HighestCost(hashes_))),
      unknown_user_cached_hash_(Salt(kCheapKind, kCheapRounds)) {}

std::string PasswordCheck::CachedHash(const std::string& user) {
  const MutexLock lock(mutex_);
  const auto found = cached_hashes_.find(user);
  return found == cached_hashes_.end() ? "" : found->second;
}

PasswordCheck::Verdict PasswordCheck::Check(const std::string& user, std::string_view password) {
  if (password.size() > kMaxPasswordSize || password.find('\0') != std::string_view::npos) return Verdict::kWrong;
  const SecretText secret(password);
  const std::string cached = CachedHash(user);
  if (Same(cached, Crypt(secret.text, cached.empty() ? unknown_user_cached_hash_ : cached))) return Verdict::kRight;

  if (!AcquirePermit()) return Verdict::kBusy;
  const auto found = hashes_.find(user);
  const bool is_known = found != hashes_.end();
  const std::string& hash = is_known ? found->second : unknown_user_hash_;
  const bool right = Same(hash, Crypt(secret.text, hash)) && is_known;
  ReleasePermit();
  if (!right) return Verdict::kWrong;
  std::string fresh = Crypt(secret.text, Salt(kCheapKind, kCheapRounds));
  const MutexLock lock(mutex_);
  cached_hashes_[user] = std::move(fresh);
  return Verdict::kRight;
}

bool PasswordCheck::AcquirePermit() {
  const MutexLock lock(mutex_);
  if (computing_ >= kMaxComputing) {
    if (waiting_ >= kMaxWaiting) return false;
    ++waiting_;
    const auto deadline = std::chrono::steady_clock::now() + max_wait_;
    while (computing_ >= kMaxComputing && std::chrono::steady_clock::now() < deadline) released_.WaitUntil(mutex_, deadline);
    --waiting_;
    if (computing_ >= kMaxComputing) return false;
  }
  ++computing_;
  return true;
}

void PasswordCheck::ReleasePermit() {
  {
    const MutexLock lock(mutex_);
    --computing_;
  }
  released_.NotifyOne();
}

}  // namespace persia::agent
