// Makes the gateway from the settings.
//
// Thread safety: any thread.
#pragma once

#include <string>

#include "config/options.h"
#include "push/group_ledger.h"
#include "push/pusher.h"

namespace persia::agent {

// The gateway of these settings, whose groups are in `ledger`.
Pusher::Target MakeGateway(const AgentOptions& options, GroupLedger& ledger);

// Whether both have the same gateway, and push to it in the same way.
bool HaveSameGateway(const AgentOptions& a, const AgentOptions& b);

// The address of this host on the route to the gateway, if one is set, else on the default route. Resolves the gateway's name,
// which may take seconds.
std::string OwnAddress(const AgentOptions& options);

}  // namespace persia::agent
