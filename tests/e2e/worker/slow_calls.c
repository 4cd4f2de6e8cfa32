/* Preloaded into the agent's program: makes calls as slow as on a dying disk, SLOW_SECONDS (60) each. SLOW_CALLS is fdatasync
 * (but of a tmpfs, where nothing waits for a disk), mkdirat, or "stat of groups": the calls that look for the file of the
 * pushed groups. The programs that the agent's parent starts inherit the variable, and are not slowed down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static void slow_down(const char* call) {
  const char* const slow = getenv("SLOW_CALLS");
  if (slow == NULL || strcmp(slow, call) != 0) return;
  if (strcmp(program_invocation_short_name, "persia-metrics-agent") != 0) return;
  const char* const seconds = getenv("SLOW_SECONDS");
  const double wanted = seconds == NULL ? 60 : atof(seconds);
  struct timespec left = {.tv_sec = (time_t)wanted, .tv_nsec = (long)((wanted - (double)(time_t)wanted) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
}

int fdatasync(int fd) {
  struct statfs filesystem;
  if (fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) slow_down("fdatasync");
  int (*const real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return real(fd);
}

int faccessat(int fd, const char* path, int mode, int flags) {
  if (strstr(path, ".groups") != NULL) slow_down("stat of groups");
  int (*const real)(int, const char*, int, int) = (int (*)(int, const char*, int, int))dlsym(RTLD_NEXT, "faccessat");
  return real(fd, path, mode, flags);
}

int fstatat(int fd, const char* path, struct stat* info, int flags) {
  if (strstr(path, ".groups") != NULL) slow_down("stat of groups");
  int (*const real)(int, const char*, struct stat*, int) =
      (int (*)(int, const char*, struct stat*, int))dlsym(RTLD_NEXT, "fstatat");
  return real(fd, path, info, flags);
}

int mkdirat(int fd, const char* path, mode_t mode) {
  slow_down("mkdirat");
  int (*const real)(int, const char*, mode_t) = (int (*)(int, const char*, mode_t))dlsym(RTLD_NEXT, "mkdirat");
  return real(fd, path, mode);
}
