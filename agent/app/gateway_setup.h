// Makes gateways and name look-ups from the settings.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/gateway_routes.h"
#include "config/options.h"
#include "gateways/gateway_names.h"
#include "push/group_ledger.h"
#include "push/push_gateway.h"

namespace persia::agent {

std::shared_ptr<PushGateway> MakeGateway(const AgentOptions& options, const GatewayPlace& place, GroupLedger& ledger);

// Options that log the outcome of each look-up, and call `note` with whether it had an answer.
GatewayNames::Options LookUpOptions(std::function<void(bool good)> note);

// The address of this host on the route to the first gateway. Looks the gateway's name up, which may take seconds.
std::string OwnAddress(const AgentOptions& options);

}  // namespace persia::agent
