// All addresses of a name.
#pragma once

#include <string>
#include <vector>

#include "model/result.h"

namespace persia::agent {

// IPv4 and IPv6, as text, sorted, each once; those of a kind that this host has no route to are left out, unless there are no
// others. An error names the host and says why there is none. Takes as long as the resolver wants.
//
// Thread safety: any thread.
Result<std::vector<std::string>> LookUpAll(const std::string& host);

}  // namespace persia::agent
