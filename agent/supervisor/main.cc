// persia-metrics-agent: supervises the job's command under `exec`; any other verb is the agent's program's,
// persia-metrics-agentd.
#include <string.h>
#include <unistd.h>

#include "supervisor/program.h"
#include "supervisor/supervisor.h"

int main(int argc, char** argv) {
  using namespace persia::supervisor;
  if (argc > 1 && strcmp(argv[1], "exec") == 0) return Supervisor(argc, argv, environ).Run();
  return ExecuteAgent(argv, environ);
}
