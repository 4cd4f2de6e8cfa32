// What addresses may look like, before anything tries to reach them.
#pragma once

#include <string_view>

#include "model/result.h"

namespace persia::agent {

// host:port, or a URL of http or https with an optional port and path prefix. A user or password in it is refused without
// being quoted.
Status CheckGatewayAddress(std::string_view text);

// IPv4:port, port 0 for any free one.
Status CheckListenAddress(std::string_view text);

}  // namespace persia::agent
