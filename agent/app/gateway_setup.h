// Makes the parts of the way to the gateways out of settings.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/gateway_names.h"
#include "app/gateway_routes.h"
#include "app/options.h"
#include "sink/group_ledger.h"
#include "sink/push_gateway.h"
#include "sink/sink_log.h"

namespace persia::agent {

// What sinks say goes to the log.
SinkLog SinkToLog();

std::shared_ptr<PushGateway> MakeGateway(const AgentOptions& options, const GatewayPlace& place, GroupLedger& ledger);

// How names are looked up, and what is said of it. `note`: one was, with or without an answer.
GatewayNames::Options LookUps(std::function<void(bool good)> note);

// This host's address towards the first of the gateways: a name is looked up, which can take a while.
std::string OwnAddress(const AgentOptions& options);

}  // namespace persia::agent
