// persia-metrics-agent: supervises the job's command under `exec`; any other verb is the agent's program's,
// persia-metrics-agentd.
#include <string.h>
#include <unistd.h>

#include "supervisor/program.h"
#include "supervisor/supervisor.h"

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "exec") == 0) return persia::supervisor::Supervisor(argc, argv, environ).Run();
  return persia::supervisor::ExecuteAgent(argv, environ);
}
