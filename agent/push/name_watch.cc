#include "push/name_watch.h"

#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"

namespace persia::agent {

NameWatch::NameWatch(const std::string& host, Options options, std::function<void(bool known)> answered) {
  try {
    StartThread("name look-up", [state = state_, host, options = std::move(options), answered = std::move(answered)] {
      for (;;) {
        const bool known = options.has_address(host);
        const MutexLock lock(state->mutex);
        if (state->stopped) return;
        answered(known);
        if (known) return;
        const auto next = std::chrono::steady_clock::now() + options.interval;
        while (!state->stopped && std::chrono::steady_clock::now() < next) state->wake.WaitUntil(state->mutex, next);
        if (state->stopped) return;
      }
    }).detach();
  } catch (const std::system_error& error) {
    LogWarning("gateway.name", "cannot start a thread to look up " + Quoted(host) + ": " + error.what() +
                                   "; nothing is pushed until the settings are reloaded");
  }
}

NameWatch::~NameWatch() {
  const MutexLock lock(state_->mutex);
  state_->stopped = true;
  state_->wake.NotifyAll();
}

}  // namespace persia::agent
