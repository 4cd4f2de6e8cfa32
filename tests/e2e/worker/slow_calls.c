/* Preloaded into the agent's program: makes calls as slow as on a dying disk. SLOW_CALLS=fdatasync or mkdirat, 60 s each. The
 * programs that the agent's parent starts inherit the variable, and are not slowed down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void slow_down(const char* call) {
  const char* const slow = getenv("SLOW_CALLS");
  if (slow == NULL || strcmp(slow, call) != 0) return;
  if (strcmp(program_invocation_short_name, "persia-metrics-agent") != 0) return;
  for (unsigned left = 60; left > 0;) left = sleep(left);
}

int fdatasync(int fd) {
  slow_down("fdatasync");
  int (*const real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return real(fd);
}

int mkdirat(int fd, const char* path, mode_t mode) {
  slow_down("mkdirat");
  int (*const real)(int, const char*, mode_t) = (int (*)(int, const char*, mode_t))dlsym(RTLD_NEXT, "mkdirat");
  return real(fd, path, mode);
}
