/* Makes the n-th call of a function fail. Tests preload it.
 *
 *   FAULTS=malloc:3:12       the third call fails, with error number 12
 *   FAULTS=malloc:3+:12      the third and all later calls fail
 *   FAULTS_REPORT=FILE       counts the calls there: struct report, which a forked child shares
 *
 * Calls are counted inside scopes only (inject.h). `malloc` names all functions that allocate, which operator new uses too.
 * Thread safety: any thread; which of two concurrent calls is the n-th is chance. */
#define _GNU_SOURCE
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* One entry a function, in the order of the report. */
/* clang-format off */
#define FUNCTIONS(X) \
  X(malloc) X(open) X(openat) X(fopen) X(fopen64) X(mkdirat) X(faccessat) X(fsync) X(fstat) X(stat) X(fstatvfs) X(fchmod) \
  X(fchmodat) X(fcntl) X(ftruncate) X(posix_fallocate) X(fallocate) X(read) X(pread) X(write) X(writev) X(pwrite) X(mmap) X(munmap) \
  X(madvise) X(linkat) X(rename) X(unlink) X(unlinkat) X(renameat) X(dup) X(getrandom) X(pthread_key_create) \
  X(pthread_setspecific) X(pthread_create) X(memfd_create) X(readlink) X(close) X(on_exit) X(poll)
/* clang-format on */

#define ENUMERATED(name) k_##name,
#define NAMED(name) #name,
enum { FUNCTIONS(ENUMERATED) kFunctions };
static const char* const names[] = {FUNCTIONS(NAMED)};

struct report {
  uint64_t hits;
  struct {
    char name[24];
    uint64_t calls;
  } functions[kFunctions];
};

static struct report own_report;
static struct report* report = &own_report;
static int faulty = -1;
static uint64_t first;
static uint64_t last;
static int error_number;
static __thread int scopes __attribute__((tls_model("initial-exec")));

void persia_faults_scope(int change) { scopes += change; }

static int fails(int function) {
  if (scopes <= 0) return 0;
  const uint64_t call = __atomic_add_fetch(&report->functions[function].calls, 1, __ATOMIC_RELAXED);
  if (function != faulty || call < first || call > last) return 0;
  __atomic_add_fetch(&report->hits, 1, __ATOMIC_RELAXED);
  errno = error_number;
  return 1;
}

/* By system calls, since the functions are replaced here. */
static void open_report(const char* path) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof *report) != 0) abort();
  const long at = syscall(SYS_mmap, NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == -1) abort();
  syscall(SYS_close, fd);
  report = (struct report*)at;
  for (int i = 0; i < kFunctions; ++i) {
    strcpy(report->functions[i].name, names[i]);
  }
}

__attribute__((constructor)) static void start(void) {
  const char* path = getenv("FAULTS_REPORT");
  if (path != NULL) {
    open_report(path);
  }
  const char* fault = getenv("FAULTS");
  if (fault == NULL) return;
  const char* colon = strchr(fault, ':');
  if (colon == NULL) abort();
  for (int i = 0; i < kFunctions; ++i) {
    if (strlen(names[i]) == (size_t)(colon - fault) && strncmp(fault, names[i], strlen(names[i])) == 0) {
      faulty = i;
    }
  }
  char* end;
  first = strtoull(colon + 1, &end, 10);
  last = *end == '+' ? UINT64_MAX : first;
  error_number = atoi(end + (*end == '+' ? 2 : 1));
  if (faulty < 0 || error_number == 0) abort();
}

#define EXPORTED __attribute__((visibility("default")))

/* glibc's own names of its allocator. */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

EXPORTED void* malloc(size_t bytes) { return fails(k_malloc) ? NULL : __libc_malloc(bytes); }
EXPORTED void* calloc(size_t count, size_t bytes) { return fails(k_malloc) ? NULL : __libc_calloc(count, bytes); }
EXPORTED void* realloc(void* at, size_t bytes) { return fails(k_malloc) ? NULL : __libc_realloc(at, bytes); }
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(k_malloc) ? NULL : __libc_memalign(alignment, bytes);
}
EXPORTED void* memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
EXPORTED int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* at = aligned_alloc(alignment, bytes);
  if (at == NULL) return ENOMEM;
  *out = at;
  return 0;
}

/* The next definition of a function, after this library's. To look for it may allocate. */
static void find_next(const char* name, void* next) {
  const int before = scopes;
  scopes = 0;
  void* found = dlsym(RTLD_NEXT, name);
  scopes = before;
  if (found == NULL) abort();
  memcpy(next, &found, sizeof found);
}

/* A function that reports an error by errno and by the value `failed`. */
#define FAULTY(type, failed, name, parameters, arguments)     \
  EXPORTED type name parameters {                             \
    static __typeof__(&(name)) next;                          \
    if (next == NULL) find_next(#name, &next);                \
    return fails(k_##name) ? (type)(failed) : next arguments; \
  }

FAULTY(FILE*, NULL, fopen, (const char* path, const char* mode), (path, mode))
FAULTY(FILE*, NULL, fopen64, (const char* path, const char* mode), (path, mode))
FAULTY(int, -1, mkdirat, (int directory, const char* path, mode_t mode), (directory, path, mode))
FAULTY(int, -1, faccessat, (int directory, const char* path, int mode, int flags), (directory, path, mode, flags))
FAULTY(int, -1, fsync, (int fd), (fd))
FAULTY(int, -1, fstat, (int fd, struct stat* info), (fd, info))
FAULTY(int, -1, stat, (const char* path, struct stat* info), (path, info))
FAULTY(int, -1, fstatvfs, (int fd, struct statvfs* info), (fd, info))
FAULTY(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
FAULTY(int, -1, fchmodat, (int directory, const char* path, mode_t mode, int flags), (directory, path, mode, flags))
FAULTY(int, -1, ftruncate, (int fd, off_t size), (fd, size))
FAULTY(int, error_number, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes))
FAULTY(int, -1, fallocate, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes))
FAULTY(ssize_t, -1, read, (int fd, void* buffer, size_t bytes), (fd, buffer, bytes))
FAULTY(ssize_t, -1, pread, (int fd, void* buffer, size_t bytes, off_t offset), (fd, buffer, bytes, offset))
FAULTY(ssize_t, -1, write, (int fd, const void* buffer, size_t bytes), (fd, buffer, bytes))
FAULTY(ssize_t, -1, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count))
FAULTY(ssize_t, -1, pwrite, (int fd, const void* buffer, size_t bytes, off_t offset), (fd, buffer, bytes, offset))
FAULTY(void*, MAP_FAILED, mmap, (void* at, size_t bytes, int access, int flags, int fd, off_t offset),
       (at, bytes, access, flags, fd, offset))
FAULTY(int, -1, munmap, (void* at, size_t bytes), (at, bytes))
FAULTY(int, -1, madvise, (void* at, size_t bytes, int advice), (at, bytes, advice))
FAULTY(int, -1, linkat, (int from, const char* path, int to, const char* target, int flags), (from, path, to, target, flags))
FAULTY(int, -1, rename, (const char* from, const char* to), (from, to))
FAULTY(int, -1, renameat, (int from_fd, const char* from, int to_fd, const char* to), (from_fd, from, to_fd, to))
FAULTY(int, -1, unlink, (const char* path), (path))
FAULTY(int, -1, unlinkat, (int fd, const char* path, int flags), (fd, path, flags))
FAULTY(int, -1, dup, (int fd), (fd))
FAULTY(int, -1, poll, (struct pollfd * fds, nfds_t count, int milliseconds), (fds, count, milliseconds))
FAULTY(ssize_t, -1, getrandom, (void* buffer, size_t bytes, unsigned flags), (buffer, bytes, flags))
FAULTY(int, error_number, pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
FAULTY(int, error_number, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
FAULTY(int, -1, memfd_create, (const char* name, unsigned flags), (name, flags))
FAULTY(int, -1, on_exit, (void (*handler)(int, void*), void* argument), (handler, argument))
FAULTY(ssize_t, -1, readlink, (const char* path, char* buffer, size_t bytes), (path, buffer, bytes))

struct start {
  void* (*body)(void*);
  void* argument;
};

static void* in_scope(void* at) {
  const struct start start = *(struct start*)at;
  free(at);
  ++scopes;
  return start.body(start.argument);
}

/* A thread that is started inside a scope is in one. */
EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static __typeof__(&pthread_create) next;
  if (next == NULL) find_next("pthread_create", &next);
  if (scopes <= 0) return next(thread, attributes, body, argument);
  if (fails(k_pthread_create)) return error_number;
  struct start* start = __libc_malloc(sizeof *start);
  if (start == NULL) return EAGAIN;
  *start = (struct start){body, argument};
  const int error = next(thread, attributes, in_scope, start);
  if (error != 0) free(start);
  return error;
}

/* The descriptor is closed all the same, as by the kernel. */
EXPORTED int close(int fd) {
  const int result = (int)syscall(SYS_close, fd);
  return fails(k_close) ? -1 : result;
}

static mode_t mode_of(int flags, va_list* more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(*more, mode_t) : 0;
}

EXPORTED int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, &more);
  va_end(more);
  return fails(k_open) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORTED int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, &more);
  va_end(more);
  return fails(k_openat) ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}

EXPORTED int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return fails(k_fcntl) ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}
