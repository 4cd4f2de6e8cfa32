#include "net/password_check.h"

#include <crypt.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace persia::agent {
namespace {

// SHA-256 in the fewest rounds that there are: less than a millisecond.
constexpr char kCheapKind[] = "$5$";
constexpr unsigned long kCheapRounds = 1000;
constexpr size_t kHashSize = 60;  // $2y$10$, 22 digits of salt, 31 of hash
constexpr std::chrono::seconds kLongestWait{2};

int CostOf(std::string_view hash) { return (hash[4] - '0') * 10 + (hash[5] - '0'); }

// `setting` is a hash or what begins one. Empty if it cannot be computed.
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

// Takes as long wherever they differ.
bool Same(const std::string& a, const std::string& b) {
  if (a.empty() || a.size() != b.size()) return false;
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs = differs | static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

int DearestOf(const std::map<std::string, std::string>& hashes) {
  int cost = 4;
  for (const auto& [user, hash] : hashes) cost = std::max(cost, CostOf(hash));
  return cost;
}

class Cleared {
 public:
  explicit Cleared(std::string_view secret) : text(secret) {}
  ~Cleared() { explicit_bzero(text.data(), text.size()); }
  Cleared(const Cleared&) = delete;
  Cleared& operator=(const Cleared&) = delete;

  std::string text;
};

}  // namespace

std::string PasswordCheck::WhyUnusable(std::string_view hash) {
  const bool known = hash.starts_with("$2y$") || hash.starts_with("$2a$") || hash.starts_with("$2b$");
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto salt_digit = [&](char c) {
    return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '/';
  };
  if (!known || hash.size() != kHashSize || !digit(hash[4]) || !digit(hash[5]) || hash[6] != '$' || CostOf(hash) < 4 ||
      !std::all_of(hash.begin() + 7, hash.end(), salt_digit)) {
    return "is not a bcrypt hash ($2y$, $2a$ or $2b$, 60 characters; it is not repeated here); `htpasswd -nBC 10 USER` makes "
           "one";
  }
  if (CostOf(hash) > kDearest) {
    return "is a bcrypt hash of cost " + std::to_string(CostOf(hash)) +
           ", of which each login would take seconds; make one of " + std::to_string(kDearest) + " at most";
  }
  // Not each of the 22 digits of a salt can have every value. Asked at the least cost: a job's command may wait for us.
  if (Crypt("", std::string(hash).replace(4, 2, "04")).empty()) {
    return "is not a bcrypt hash that this system's libcrypt takes (it is not repeated here)";
  }
  return "";
}

PasswordCheck::PasswordCheck(std::map<std::string, std::string> hashes)
    : stranger_hash_(Salt("$2y$", static_cast<unsigned long>(DearestOf(hashes)))),
      stranger_last_(Salt(kCheapKind, kCheapRounds)) {
  for (auto& [user, hash] : hashes) users_[user].hash = std::move(hash);
}

PasswordCheck::Verdict PasswordCheck::Check(const std::string& user, std::string_view password) {
  if (password.size() > kLongestPassword || password.find('\0') != std::string_view::npos) return Verdict::kWrong;
  const Cleared given(password);
  const auto known = users_.find(user);
  const bool stranger = known == users_.end();
  std::string last_good;
  if (!stranger) {
    const std::lock_guard lock(mutex_);
    last_good = known->second.last_good;
  }
  if (Same(last_good, Crypt(given.text, last_good.empty() ? stranger_last_ : last_good))) return Verdict::kRight;

  if (!Enter()) return Verdict::kBusy;
  const std::string& hash = stranger ? stranger_hash_ : known->second.hash;
  const bool right = Same(hash, Crypt(given.text, hash)) && !stranger;
  Leave();
  if (!right) return Verdict::kWrong;
  std::string fresh = Crypt(given.text, Salt(kCheapKind, kCheapRounds));
  const std::lock_guard lock(mutex_);
  known->second.last_good = std::move(fresh);
  return Verdict::kRight;
}

bool PasswordCheck::Enter() {
  std::unique_lock lock(mutex_);
  if (inside_ >= kAtOnce) {
    if (waiting_ >= kMayWait) return false;
    ++waiting_;
    const bool in_time = left_.wait_for(lock, kLongestWait, [this] { return inside_ < kAtOnce; });
    --waiting_;
    if (!in_time) return false;
  }
  ++inside_;
  return true;
}

void PasswordCheck::Leave() {
  {
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  left_.notify_one();
}

}  // namespace persia::agent
