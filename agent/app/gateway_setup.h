// Makes gateways and name lookups from the settings.
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

// Options that log the result of each lookup, and pass to `note` whether it had an answer. `is_missing` is called for a name
// without an address; true: it is no fault, and told elsewhere.
GatewayNames::Options LookUpOptions(std::function<void(bool good)> note, std::function<bool()> is_missing);

// The address of this host on the route to the first gateway, if one is set, else on the default route. Resolves the gateway's
// name, which may take seconds.
std::string OwnAddress(const AgentOptions& options);

}  // namespace persia::agent
