/* Runs a command with a seccomp filter that refuses system calls.
 *
 *   refuse ERROR NUMBER... -- COMMAND...     each system call of a NUMBER fails with the error number ERROR
 *
 * The command's execve is exempt if the filter does not name it. A filter needs one comparison a number, so that a program
 * cannot tell it from the sandbox of a container. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { kMaxNumbers = 512 };

int main(int argc, char** argv) {
  struct sock_filter filter[2 * kMaxNumbers + 2];
  unsigned short size = 0;
  int at = 2;
  if (argc < 4) return 2;
  const unsigned error = (unsigned)atoi(argv[1]);
  filter[size++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (; at < argc && at < kMaxNumbers && strcmp(argv[at], "--") != 0; ++at) {
    filter[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[at]), 0, 1);
    filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
  }
  filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {size, filter};
  if (at + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("refuse");
    return 2;
  }
  execvp(argv[at + 1], argv + at + 1);
  perror(argv[at + 1]);
  return 2;
}
