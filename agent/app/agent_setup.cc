#include "app/agent_setup.h"

#include <algorithm>

#include "exposure/identities.h"
#include "net/http_client.h"

namespace persia::agent {

std::shared_ptr<const Naming> NamingOf(const AgentOptions& options) {
  if (options.mapping == nullptr) return std::make_shared<PlainNaming>();
  return options.mapping;
}

Identity AgentIdentity(const AgentSetup& setup) {
  return ProcessIdentity("agent", setup.options.replica, {.job = setup.options.job_name, .ip_addr = setup.ip_addr});
}

Pusher::Pace PaceOf(const AgentOptions& options) {
  return {.interval = options.push_interval,
          .last_push = options.push_timeout,
          .last_push_if_away = std::min(options.push_timeout, HttpClient::Options{}.connect_timeout)};
}

}  // namespace persia::agent
