#include "supervisor/program.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

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
  if (strchr(name, '/') != nullptr) {
    ExecuteFile(name, argv, environment);
    return;
  }
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
  char path[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0 || static_cast<size_t>(size) == sizeof path) {
    // Without /proc: the path by which this program was executed, which a symbolic link may have led to.
    const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    size = executed == nullptr ? 0 : static_cast<ssize_t>(strnlen(executed, sizeof path));
    memcpy(path, executed, static_cast<size_t>(size));
  }
  while (size > 0 && path[size - 1] != '/') --size;
  if (static_cast<size_t>(size) + sizeof kAgent > sizeof path) {
    size = 0;
  }
  memcpy(path + size, kAgent, sizeof kAgent);
  execve(path, argv, environment);
  const int error = errno;
  Log(kError, "program", "cannot run %s, which belongs beside persia-metrics-agent: %s", path, strerror(error));
  return ExitCodeOf(error);
}

int ExitCodeOf(int error) { return error == ENOENT ? 127 : 126; }

}  // namespace persia::supervisor
