// Looks a host up until it has an address, at once and then every 30 seconds.
//
// The lookups are in a detached thread, since a resolver without a server may take half a minute. No call waits for one.
//
//   NameWatch watch("metrics_gateway", {}, [&](bool known) { ... });
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "net/name_lookup.h"

namespace persia::agent {

class NameWatch {
 public:
  struct Options {
    std::chrono::milliseconds interval = std::chrono::seconds(30);
    std::function<bool(const std::string& host)> has_address = [](const auto& host) { return LookUpAll(host).ok(); };
  };

  // `answered` is called in the thread of the lookups, after each of them; true: the host has an address, and is looked up no
  // more.
  NameWatch(const std::string& host, Options options, std::function<void(bool known)> answered);
  // Returns when `answered` is not running; it is not called any more.
  ~NameWatch();
  NameWatch(const NameWatch&) = delete;
  NameWatch& operator=(const NameWatch&) = delete;

 private:
  // Shared with the thread, which may outlive this object.
  struct State {
    Mutex mutex;
    CondVar wake;
    bool stopped PERSIA_GUARDED_BY(mutex) = false;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace persia::agent
