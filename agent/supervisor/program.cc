#include "supervisor/program.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "supervisor/library_path.h"
#include "supervisor/log.h"

namespace persia::supervisor {
namespace {

constexpr char kAgent[] = "persia-metrics-agentd";

// REQUIRES: argv[0] may be overwritten; argv[-1] may be, too.
void ExecuteFile(char* path, char** argv, char** environment) {
  execve(path, argv, environment);
  if (errno != ENOEXEC) return;
  // sh PATH ARGUMENTS...
  static char shell[] = "/bin/sh";
  argv[-1] = shell;
  argv[0] = path;
  execve(shell, argv - 1, environment);
}

}  // namespace

void Execute(char** argv, char** environment) {
  char* const name = argv[0];
  if (strchr(name, '/') != nullptr) return ExecuteFile(name, argv, environment);
  const char* path = getenv("PATH");
  if (path == nullptr) path = "/bin:/usr/bin";
  int error = ENOENT;
  for (bool more = *name != '\0'; more;) {
    const char* const end = strchrnul(path, ':');
    char candidate[PATH_MAX];
    const auto size = static_cast<size_t>(end - path);
    if (size + strlen(name) + 2 <= sizeof candidate) {
      memcpy(candidate, path, size);
      candidate[size] = '/';
      strcpy(candidate + size + (size > 0 ? 1 : 0), name);  // an empty entry is the working directory
      ExecuteFile(candidate, argv, environment);
      if (errno == EACCES) error = EACCES;
      if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return;
    }
    more = *end == ':';
    path = end + 1;
  }
  errno = error;
}

int ExecuteAgent(char** argv, char** environment) {
  char path[PATH_MAX + sizeof kAgent] = "";
  // Without /proc: the path by which this program was executed.
  const auto* const executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (realpath("/proc/self/exe", path) == nullptr && realpath(executed, path) == nullptr) path[0] = '\0';
  char* const slash = strrchr(path, '/');
  strcpy(slash == nullptr ? path : slash + 1, kAgent);
  execve(path, argv, HideLibraryPath(environment));
  const int error = errno;
  Log(kError, "program", "cannot run %s, which must be in the directory of persia-metrics-agent: %s", path, strerror(error));
  return ExitCodeOf(error);
}

int ExitCodeOf(int error) { return error == ENOENT ? 127 : 126; }

}  // namespace persia::supervisor
