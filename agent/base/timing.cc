#include "base/timing.h"

#include <algorithm>
#include <random>

namespace persia::agent {

using std::chrono::milliseconds;

milliseconds Backoff::Next() { return last_ = std::clamp(2 * last_, first_, longest_); }

milliseconds Backoff::NextJittered(std::optional<milliseconds> least) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const milliseconds most = Next();
  const milliseconds from = least.value_or(most / 2);
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(from.count(), std::max(from, most).count())(random));
}

}  // namespace persia::agent
