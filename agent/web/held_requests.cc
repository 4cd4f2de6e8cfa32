#include "web/held_requests.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/foreign_memory.h"

namespace persia::agent {
namespace {

constexpr std::chrono::seconds kPatience(10);

}  // namespace

ServerResponse BigAnswers::Answer(const std::function<ServerResponse()>& make) {
  bool taken = free_.try_acquire();
  if (!taken) {
    taken = ++waiting_ <= kMostWaiting && free_.try_acquire_for(kPatience);
    --waiting_;
  }
  if (!taken) {
    return {.status = 503,
            .body = "Too many large answers are asked for at once; ask again later.\n",
            .headers = {{"Retry-After", "1"}}};
  }
  ++held_;
  std::shared_ptr<BigAnswers> place(this, [](BigAnswers* all) { all->Return(); });
  ServerResponse response = make();
  auto body = std::make_shared<const std::string>(std::move(response.body));
  // The place is free once the server has sent the body.
  const std::string* const text = body.get();
  response.shared_body =
      std::shared_ptr<const std::string>(text, [place = std::move(place), body = std::move(body)](const std::string*) mutable {
        body.reset();
        place.reset();
      });
  return response;
}

void BigAnswers::Return() {
  if (--held_ == 0) ReturnFreeMemory();
  free_.release();
}

EndNotice::Outcome EndNotice::Await() {
  const MutexLock lock(mutex_);
  if (is_over_) return Outcome::kEnded;
  if (waiting_ == kMostWaiting) return Outcome::kTooMany;
  ++waiting_;
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  while (!is_over_ && std::chrono::steady_clock::now() < deadline) ended_.WaitUntil(mutex_, deadline);
  --waiting_;
  return is_over_ ? Outcome::kEnded : Outcome::kNotYet;
}

void EndNotice::End() {
  const MutexLock lock(mutex_);
  if (!is_over_ && waiting_ > 0) read_at_ = std::chrono::steady_clock::now() + kReading;
  is_over_ = true;
  ended_.NotifyAll();
}

void EndNotice::AwaitReaders() {
  const MutexLock lock(mutex_);
  while (std::chrono::steady_clock::now() < read_at_) ended_.WaitUntil(mutex_, read_at_);
}

}  // namespace persia::agent
