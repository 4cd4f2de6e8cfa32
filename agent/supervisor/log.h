// Log lines on stderr, in the format of the agent's: text, or one JSON object a line.
//
//   Log(kWarning, "exec.agent", "cannot start the agent: %s", strerror(errno));
#pragma once

#include "supervisor/shared_memory.h"

namespace persia::supervisor {

// Until it is called: text, level info.
void SetUpLog(LogLevel level, bool json);

// A message that is longer than 500 bytes is cut.
[[gnu::format(printf, 3, 4)]] void Log(LogLevel level, const char* event, const char* format, ...);

}  // namespace persia::supervisor
