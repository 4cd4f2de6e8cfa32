"""Checks that each C and C++ file includes the standard header of each standard name that it uses.

Another standard library, or the next release of this one, includes fewer headers inside its own, so a name that came from there is gone: GCC 14's
<functional> has no std::uint64_t. A file may rely on its own header (foo.cc on foo.h), and on no other header of the project. The tables name only
what is unambiguous without a compiler: names after `std::`, types, macros, and functions that are called without an object. A name that several
headers are documented to provide is in each one's row.

Usage: check_includes.py [FILE...], by default all files of agent/, lib/, examples/ and tests/ that git knows. Prints `file:line: uses std::sort but
does not include <algorithm>`, and exits with 1 if there are any.
"""

import collections
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("agent", "lib", "examples", "tests")
CONTAINERS = "array deque forward_list list map set span string string_view unordered_map unordered_set vector"
RANGE_ALGORITHMS = """adjacent_find all_of any_of binary_search copy copy_if copy_n count count_if equal equal_range fill fill_n find find_end find_first_of
    find_if find_if_not for_each generate includes is_sorted lower_bound max max_element min min_element minmax minmax_element mismatch move nth_element
    none_of partial_sort partition remove remove_if replace replace_if reverse rotate search set_difference set_intersection set_union shuffle sort
    stable_partition stable_sort transform unique upper_bound"""

# Header: what comes from it as std::name. Of a name with several headers, the first one is suggested.
CXX = {
    "algorithm": RANGE_ALGORITHMS.replace(" remove ", " ").replace(" move ", " ")
    + " clamp copy_backward generate_n is_permutation iter_swap lexicographical_compare "
    "make_heap merge pop_heap push_heap reverse_copy rotate_copy sort_heap swap_ranges unique_copy",
    "any": "any any_cast",
    "array": "array to_array",
    "atomic": """atomic atomic_flag atomic_ref atomic_signal_fence atomic_thread_fence memory_order memory_order_acq_rel memory_order_acquire
        memory_order_relaxed memory_order_release memory_order_seq_cst""",
    "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_one countl_zero countr_one countr_zero endian has_single_bit popcount rotl rotr",
    "bitset": "bitset",
    "charconv": "chars_format from_chars from_chars_result to_chars to_chars_result",
    "chrono": "chrono chrono_literals",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "concepts": "convertible_to derived_from floating_point integral invocable same_as signed_integral unsigned_integral",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "deque": "deque",
    "exception": """current_exception exception exception_ptr get_terminate make_exception_ptr rethrow_exception set_terminate terminate
        terminate_handler uncaught_exceptions""",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream filebuf",
    "functional": "bind cref function greater greater_equal hash invoke less less_equal mem_fn not_fn plus ref reference_wrapper",
    "future": "async future future_status launch packaged_task promise shared_future",
    "initializer_list": "initializer_list",
    "iomanip": "get_time put_time setfill setprecision setw",
    "ios": "boolalpha dec fixed hex ios ios_base streamoff streamsize",
    "iostream": "cerr cin clog cout",
    "istream": "istream ws",
    "iterator": """advance back_inserter begin cbegin cend data distance empty end forward_iterator_tag front_inserter input_iterator_tag insert_iterator
        inserter istream_iterator istreambuf_iterator iterator_traits make_move_iterator move_iterator next ostream_iterator ostreambuf_iterator prev rbegin
        rend reverse_iterator size ssize""",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale",
    "map": "map multimap",
    "memory": """addressof align allocate_shared allocator const_pointer_cast construct_at destroy_at dynamic_pointer_cast enable_shared_from_this
        make_shared make_unique shared_ptr static_pointer_cast unique_ptr weak_ptr""",
    "memory_resource": "pmr",
    "mutex": "adopt_lock call_once defer_lock lock_guard mutex once_flag recursive_mutex scoped_lock timed_mutex try_to_lock unique_lock",
    "new": "align_val_t bad_alloc get_new_handler launder new_handler nothrow nothrow_t set_new_handler",
    "numbers": "numbers",
    "numeric": "accumulate adjacent_difference gcd inner_product iota lcm midpoint partial_sum reduce transform_reduce",
    "optional": "bad_optional_access make_optional nullopt nullopt_t optional",
    "ostream": "endl flush ostream",
    "queue": "priority_queue queue",
    "random": """bernoulli_distribution default_random_engine discrete_distribution exponential_distribution lognormal_distribution minstd_rand mt19937
        mt19937_64 normal_distribution poisson_distribution random_device seed_seq uniform_int_distribution uniform_real_distribution""",
    "ranges": "views",
    "ratio": "kilo mega micro milli nano ratio",
    "regex": "regex regex_match regex_replace regex_search smatch",
    "semaphore": "binary_semaphore counting_semaphore",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "source_location": "source_location",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "istringstream ostringstream stringbuf stringstream",
    "stack": "stack",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range overflow_error range_error runtime_error underflow_error",
    "stop_token": "stop_callback stop_source stop_token",
    "string": "basic_string char_traits getline stod stof stoi stol stoll stoul stoull string string_literals to_string u16string u32string u8string wstring",
    "string_view": "basic_string_view string_view string_view_literals u8string_view wstring_view",
    "system_error": "errc error_category error_code error_condition generic_category make_error_code system_category system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply forward_as_tuple ignore make_from_tuple make_tuple tie tuple tuple_cat",
    "type_traits": """add_const_t add_lvalue_reference_t alignment_of_v bool_constant common_type_t conditional_t conjunction_v decay_t disjunction_v
        enable_if_t extent_v false_type has_unique_object_representations_v integral_constant invoke_result_t is_arithmetic_v is_base_of_v is_class_v
        is_const_v is_constant_evaluated is_constructible_v is_convertible_v is_copy_assignable_v is_copy_constructible_v is_default_constructible_v
        is_empty_v is_enum_v is_floating_point_v is_function_v is_integral_v is_invocable_r_v is_invocable_v is_move_assignable_v is_move_constructible_v
        is_nothrow_copy_constructible_v is_nothrow_default_constructible_v is_nothrow_destructible_v is_nothrow_invocable_v is_nothrow_move_assignable_v
        is_nothrow_move_constructible_v is_pointer_v is_reference_v is_same is_same_v is_signed_v is_standard_layout_v is_trivially_copyable_v
        is_trivially_default_constructible_v is_trivially_destructible_v is_unsigned_v is_void_v make_signed_t make_unsigned_t remove_const_t remove_cv_t
        remove_cvref_t remove_extent_t remove_pointer_t remove_reference_t true_type type_identity_t underlying_type_t void_t""",
    "typeindex": "type_index",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_multiset unordered_set",
    "utility": """as_const cmp_equal cmp_greater cmp_greater_equal cmp_less cmp_less_equal declval exchange forward in_place in_place_t in_range
        index_sequence index_sequence_for integer_sequence make_index_sequence make_pair move pair piecewise_construct""",
    "variant": "bad_variant_access get_if holds_alternative monostate variant variant_alternative_t variant_size_v visit",
    "vector": "vector",
}
# Further headers that the C++ standard, or a type that they must define, provides a name with.
ALSO = {
    "begin cbegin cend data empty end rbegin rend size ssize": CONTAINERS,
    "initializer_list": CONTAINERS + " algorithm memory optional utility variant",
    "pair make_pair piecewise_construct": "map unordered_map",
    "less": "map set",
    "hash": "memory optional string string_view thread variant",
    "in_place in_place_t": "any optional variant",
    "exception exception_ptr": "future",
    "bad_alloc": "exception",
    "partial_ordering strong_ordering weak_ordering": "iterator",
    "errc": "charconv",
    "ios ios_base streamoff streamsize dec fixed hex boolalpha": "fstream iomanip iostream istream ostream sstream",
    "istream": "fstream iostream sstream",
    "ostream endl flush": "fstream iostream sstream",
    "chrono chrono_literals": "condition_variable future thread",
    "stop_token stop_source": "condition_variable thread",
    "allocator": CONTAINERS,
    "char_traits": "string_view",
    "cv_status": "condition_variable",
    "ratio milli micro nano kilo mega": "chrono",
    "adopt_lock defer_lock try_to_lock": "shared_mutex",
    "iterator_traits reverse_iterator": CONTAINERS,
}

# C header without .h: its types, macros and functions, bare, after `::` or after `std::`.
C = {
    "assert": ("", "assert"),
    "ctype": ("", "isalnum isalpha isdigit islower isprint isspace isupper isxdigit tolower toupper"),
    "errno": ("errno " + """E2BIG EACCES EADDRINUSE EAGAIN EBADF EBUSY ECANCELED ECHILD ECONNREFUSED ECONNRESET EDEADLK EEXIST EFAULT EFBIG EILSEQ
        EINPROGRESS EINTR EINVAL EIO EISDIR ELOOP EMFILE EMSGSIZE ENAMETOOLONG ENFILE ENOBUFS ENODATA ENODEV ENOENT ENOEXEC ENOMEM ENOSPC ENOSYS ENOTCONN
        ENOTDIR ENOTEMPTY ENOTSUP ENXIO EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO ERANGE EROFS ESPIPE ESRCH ETIMEDOUT EWOULDBLOCK EXDEV""", ""),
    "inttypes": ("PRId64 PRIu64 PRIx64 PRIu32 PRId32 SCNu64 SCNx64", ""),
    "limits": ("CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LLONG_MAX LLONG_MIN LONG_MAX LONG_MIN NAME_MAX PATH_MAX UCHAR_MAX UINT_MAX ULLONG_MAX ULONG_MAX",
        ""),
    "locale": ("LC_ALL LC_NUMERIC", "setlocale localeconv"),
    "math": ("HUGE_VAL INFINITY M_PI NAN", """cbrt ceil copysign exp2 expm1 fabs fmod fmax fmin frexp hypot isfinite isinf isnan isnormal ldexp lgamma llround
        log10 log1p log2 lround modf nan nearbyint nextafter rint signbit sqrt trunc"""),
    "setjmp": ("jmp_buf sigjmp_buf", "longjmp setjmp siglongjmp sigsetjmp"),
    "signal": ("""SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGKILL SIGPIPE SIGPROF SIGQUIT SIGSEGV SIGSTOP SIGSYS SIGTERM SIGTRAP
        SIGTSTP SIGUSR1 SIGUSR2 SIG_BLOCK SIG_DFL SIG_ERR SIG_IGN SIG_SETMASK SIG_UNBLOCK SA_NODEFER SA_ONSTACK SA_RESETHAND SA_RESTART SA_SIGINFO
        sig_atomic_t siginfo_t sigset_t stack_t""", """kill killpg pthread_kill pthread_sigmask raise sigaction sigaddset sigaltstack sigdelset sigemptyset sigfillset
        sigismember signal sigpending sigprocmask sigqueue sigsuspend sigtimedwait sigwait sigwaitinfo"""),
    "stdarg": ("va_list", "va_arg va_copy va_end va_start"),
    "stddef": ("max_align_t offsetof ptrdiff_t size_t", ""),
    "stdint": ("""INT16_MAX INT32_MAX INT32_MIN INT64_C INT64_MAX INT64_MIN INT8_MAX SIZE_MAX UINT16_MAX UINT32_MAX UINT64_C UINT64_MAX UINT8_MAX
        int16_t int32_t int64_t int8_t int_fast32_t intmax_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t uintptr_t""", ""),
    "stdio": ("BUFSIZ FILE SEEK_CUR SEEK_END SEEK_SET stderr stdin stdout", """fclose fdopen feof ferror fflush fgetc fgets fileno fopen fprintf fputc fputs fread
        freopen fscanf fseek ftell fwrite getchar getline open_memstream pclose perror popen printf putc putchar puts rename rewind setbuf setvbuf snprintf
        sprintf sscanf tmpfile vfprintf vprintf vsnprintf"""),
    "stdlib": ("EXIT_FAILURE EXIT_SUCCESS RAND_MAX", """_Exit abort aligned_alloc atexit atof atoi atol atoll calloc exit free getenv malloc mkdtemp mkostemp mkstemp
        posix_memalign putenv qsort quick_exit rand realloc realpath secure_getenv setenv srand strtod strtof strtol strtold strtoll strtoul strtoull system
        unsetenv"""),
    "string": ("", """memchr memcmp memcpy memmem memmove memset strcat strchr strcmp strcpy strcspn strdup strerror strerror_r strlen strncat strncmp strncpy
        strndup strnlen strpbrk strrchr strsignal strspn strstr strtok strtok_r"""),
    "time": ("CLOCK_BOOTTIME CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_THREAD_CPUTIME_ID time_t",
        "asctime clock_getres clock_gettime clock_nanosleep ctime difftime gmtime gmtime_r localtime localtime_r mktime nanosleep strftime strptime timegm"),
    "wchar": ("mbstate_t wint_t", "mbrtowc wcrtomb wcslen wcwidth"),
}
# What other headers give for these C names: the C and POSIX standards say so.
C_ALSO = {
    "size_t": "stdio stdlib string time wchar uchar signal sys/types sys/mman sys/socket sys/uio unistd dirent glob grp iconv netdb poll pwd regex spawn",
    "ssize_t": "unistd stdio sys/socket sys/uio",
    "INT64_C UINT64_C SIZE_MAX int16_t int32_t int64_t int8_t intmax_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t uintptr_t": "inttypes",
    "intptr_t": "unistd",
    "uint32_t uint16_t": "arpa/inet netinet/in",
    "SEEK_SET SEEK_CUR SEEK_END": "unistd fcntl",
    "time_t": "sys/types sys/stat sys/time signal sched pthread utime",
    "clockid_t timer_t": "sys/types time signal",
    "sigset_t": "poll pthread spawn sys/select",
    "siginfo_t": "sys/wait",
    "stack_t": "ucontext",
    "va_list": "stdio wchar",
    "FILE": "wchar",
    "getline": "istream string",
    "pid_t": "sys/types unistd signal sys/wait fcntl sched spawn time",
    "mode_t": "sys/stat fcntl sys/mman spawn sys/ipc",
    "off_t": "unistd fcntl stdio sys/mman sys/stat",
    "ino_t dev_t nlink_t": "sys/stat dirent",
    "uid_t gid_t": "unistd sys/stat signal pwd grp",
    "pthread_t": "sys/types signal",
    "socklen_t": "netdb sys/un netinet/in arpa/inet",
    "iovec": "sys/socket",
    "timeval": "sys/resource sys/select",
    "ntohl htonl ntohs htons": "netinet/in",
    "sockaddr_in in_addr in_port_t INADDR_ANY INADDR_LOOPBACK INET_ADDRSTRLEN": "arpa/inet",
    "rusage": "sys/wait",
    "statfs fstatfs": "sys/vfs",
}
# Header of POSIX or Linux: its types and macros, and its functions.
POSIX = {
    "arpa/inet.h": ("", "htonl htons inet_ntop inet_pton ntohl ntohs"),
    "dirent.h": ("DIR", "closedir fdopendir opendir readdir"),
    "dlfcn.h": ("RTLD_DEFAULT RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NEXT RTLD_NODELETE RTLD_NOLOAD RTLD_NOW Dl_info",
        "dladdr dlclose dlerror dlopen dlsym"),
    "fcntl.h": ("""AT_EMPTY_PATH AT_FDCWD AT_REMOVEDIR AT_SYMLINK_NOFOLLOW FALLOC_FL_KEEP_SIZE FALLOC_FL_PUNCH_HOLE FD_CLOEXEC F_ADD_SEALS F_DUPFD
        F_DUPFD_CLOEXEC F_GETFD F_GETFL F_OFD_SETLK F_RDLCK F_SETFD F_SETFL F_SETLK F_SETPIPE_SZ F_UNLCK F_WRLCK O_APPEND O_CLOEXEC O_CREAT O_DIRECTORY O_EXCL
        O_NOFOLLOW O_NONBLOCK O_PATH O_RDONLY O_RDWR O_SYNC O_TMPFILE O_TRUNC O_WRONLY""", "fallocate fcntl openat posix_fadvise posix_fallocate"),
    "netdb.h": ("NI_NUMERICHOST", "freeaddrinfo gai_strerror getaddrinfo getnameinfo"),
    "netinet/in.h": ("INADDR_ANY INADDR_LOOPBACK INET_ADDRSTRLEN INET6_ADDRSTRLEN in_addr in_port_t sockaddr_in sockaddr_in6", ""),
    "poll.h": ("POLLERR POLLHUP POLLIN POLLOUT nfds_t pollfd", "ppoll"),
    "pthread.h": ("pthread_attr_t pthread_key_t pthread_mutex_t pthread_once_t pthread_t", """pthread_atfork pthread_attr_init pthread_create pthread_detach
        pthread_exit pthread_getspecific pthread_join pthread_key_create pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_self pthread_setname_np
        pthread_setspecific"""),
    "sched.h": ("CLONE_NEWNET CLONE_NEWNS CLONE_NEWPID CLONE_NEWUSER CPU_ISSET CPU_SET CPU_ZERO cpu_set_t", "sched_getaffinity sched_setaffinity sched_yield setns unshare"),
    "semaphore.h": ("sem_t", "sem_init sem_post sem_wait"),
    "spawn.h": ("posix_spawn_file_actions_t posix_spawnattr_t", "posix_spawn posix_spawnp"),
    "sys/eventfd.h": ("EFD_CLOEXEC EFD_NONBLOCK", "eventfd"),
    "sys/file.h": ("LOCK_EX LOCK_NB LOCK_SH LOCK_UN", "flock"),
    "sys/inotify.h": ("IN_CREATE inotify_event", "inotify_add_watch inotify_init1"),
    "sys/ioctl.h": ("", "ioctl"),
    "sys/mman.h": ("""MADV_DONTNEED MAP_ANONYMOUS MAP_FAILED MAP_FIXED MAP_NORESERVE MAP_POPULATE MAP_PRIVATE MAP_SHARED MFD_CLOEXEC MS_SYNC PROT_EXEC PROT_NONE
        PROT_READ PROT_WRITE""", "madvise memfd_create mlock mmap mprotect mremap msync munmap shm_open shm_unlink"),
    "sys/mount.h": ("MS_BIND MS_NODEV MS_NOSUID MS_PRIVATE MS_RDONLY MS_REC", "mount umount umount2"),
    "sys/prctl.h": ("PR_GET_NAME PR_SET_CHILD_SUBREAPER PR_SET_DUMPABLE PR_SET_NAME PR_SET_PDEATHSIG", "prctl"),
    "sys/random.h": ("", "getentropy getrandom"),
    "sys/resource.h": ("RLIMIT_AS RLIMIT_CORE RLIMIT_FSIZE RLIMIT_NOFILE RLIMIT_NPROC RLIM_INFINITY RUSAGE_CHILDREN RUSAGE_SELF RUSAGE_THREAD rlim_t rlimit rusage",
        "getpriority getrlimit getrusage setpriority setrlimit"),
    "sys/select.h": ("fd_set", ""),
    "sys/signalfd.h": ("signalfd_siginfo", "signalfd"),
    "sys/socket.h": ("""AF_INET AF_INET6 AF_UNIX AF_UNSPEC MSG_DONTWAIT MSG_NOSIGNAL MSG_PEEK SHUT_RD SHUT_RDWR SHUT_WR SOCK_CLOEXEC SOCK_DGRAM SOCK_NONBLOCK
        SOCK_STREAM SOL_SOCKET SOMAXCONN SO_ERROR SO_LINGER SO_PEERCRED SO_RCVBUF SO_RCVTIMEO SO_REUSEADDR SO_SNDBUF SO_SNDTIMEO msghdr sa_family_t sockaddr
        sockaddr_storage socklen_t""", "accept4 getpeername getsockname getsockopt recvfrom recvmsg sendmsg sendto setsockopt socketpair"),
    "sys/stat.h": ("""S_IFDIR S_IFIFO S_IFMT S_IFREG S_IRGRP S_IROTH S_IRUSR S_IRWXU S_ISDIR S_ISFIFO S_ISGID S_ISLNK S_ISREG S_ISSOCK S_ISUID S_ISVTX S_IWGRP
        S_IWUSR S_IXUSR UTIME_NOW UTIME_OMIT""", "chmod fchmod fchmodat fstat fstatat futimens lstat mkdir mkdirat mkfifo mkfifoat mknod umask utimensat"),
    "sys/statfs.h": ("", "fstatfs statfs"),
    "sys/statvfs.h": ("", "fstatvfs statvfs"),
    "sys/syscall.h": ("SYS_clone3 SYS_exit_group SYS_getpid SYS_gettid SYS_pidfd_open SYS_renameat2 SYS_tgkill", ""),
    "sys/time.h": ("ITIMER_REAL itimerval timeval", "getitimer gettimeofday setitimer utimes"),
    "sys/types.h": ("clockid_t dev_t gid_t ino_t mode_t nlink_t off_t pid_t ssize_t timer_t uid_t", ""),
    "sys/uio.h": ("iovec", "preadv process_vm_readv pwritev readv writev"),
    "sys/un.h": ("sockaddr_un", ""),
    "sys/utsname.h": ("utsname", "uname"),
    "sys/wait.h": ("P_PID WCONTINUED WEXITED WEXITSTATUS WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WTERMSIG WUNTRACED", "wait4 waitid waitpid"),
    "ucontext.h": ("REG_RIP REG_RSP", ""),
    "unistd.h": ("""F_OK R_OK STDERR_FILENO STDIN_FILENO STDOUT_FILENO W_OK X_OK _SC_CLK_TCK _SC_NPROCESSORS_CONF _SC_NPROCESSORS_ONLN _SC_OPEN_MAX _SC_PAGESIZE
        _SC_PAGE_SIZE environ""", """_exit access alarm chdir chown dup dup2 dup3 environ execl execle execlp execv execve execvp execvpe faccessat fchdir fchown fdatasync fork
        fsync ftruncate getcwd getegid geteuid getgid gethostname getlogin getpagesize getpgid getpgrp getpid getppid getsid gettid getuid isatty lseek
        mkstemp pathconf pipe2 pread pwrite readlink readlinkat rmdir setegid seteuid setgid setgroups setpgid setresgid setresuid setsid setuid sleep symlink symlinkat sync_file_range
        syncfs sysconf tcgetpgrp truncate unlink unlinkat usleep vfork"""),
}


# Comments, and texts in quotes. A ' between digits separates them.
IGNORED = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|\bR"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:[^"\\\n]|\\.)*"|(?<!\w)'(?:[^'\\\n]|\\.)+'""", re.DOTALL
)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)
QUALIFIED = re.compile(r"\bstd::((?:ranges::)?\w+)")
BARE = re.compile(r"(?<![\w:>.$])(?:::)?([A-Za-z_]\w*)(?!\w|::)")
CALL = re.compile(r"(?<![\w:>.$])(?:::)?([a-z_A-Z]\w*)\(")
# What stands before a function's name in its declaration: a type. Before a call stands an operator, a bracket or one of a few words.
DECLARATION = re.compile(r"(?:(?<!\w)(?!(?:return|co_return|else|do|and|or|not)\b)[A-Za-z_]\w*|[\w>]\s?[*&]+|>)\s+[*&]*$")


def providers():
    """The headers that provide each name after std::, each bare type or macro, and each function that is called bare. The first is suggested."""
    after_std, bare, called = (collections.defaultdict(list) for _ in range(3))
    for header, names in CXX.items():
        for name in names.split():
            after_std[name].append(header)
    for names, headers in ALSO.items():
        for name in names.split():
            after_std[name] += headers.split()
    for name in RANGE_ALGORITHMS.split():
        after_std["ranges::" + name].append("algorithm")
    for table, spelling in ((C, lambda name: [f"c{name}", f"{name}.h"]), (POSIX, lambda name: [name])):
        for header, kinds in table.items():
            for names, known in zip(kinds, (bare, called)):
                for name in names.split():
                    known[name] += spelling(header)
                    if table is C:
                        after_std[name] += spelling(header)
    for names, headers in C_ALSO.items():
        for name in names.split():
            for header in headers.split():
                for known in (bare, called):
                    if name in known:
                        known[name] += [header, f"{header}.h", f"c{header}"]
            if name in after_std:
                after_std[name] += bare.get(name, called.get(name))
    return after_std, bare, called


AFTER_STD, BARE_NAMES, CALLED = providers()


def code(path):
    """The file's text without comments and quoted texts, in the same lines."""
    return IGNORED.sub(lambda ignored: '""' + "\n" * ignored[0].count("\n"), path.read_text())


def declares(text, name):
    """Whether the file has a function or a local of this name."""
    return f" {name} = " in text or any(DECLARATION.search(text, max(0, call.start() - 80), call.start()) for call in re.finditer(rf"\b{name}\(", text))


def complaints(path):
    """(line, name, header to include) of each standard name that the file uses without a header for it."""
    text = code(path)
    included = set(INCLUDE.findall(text))
    own = path.with_suffix(".h")
    own_text = code(own) if own != path and own.exists() else ""
    if own_text:
        included |= set(INCLUDE.findall(own_text))
    for pattern, known, prefix in ((QUALIFIED, AFTER_STD, "std::"), (BARE, BARE_NAMES, ""), (CALL, CALLED, "")):
        for name in set(pattern.findall(text)) & known.keys():
            if included.intersection(known[name]) or (known is CALLED and (declares(text, name) or declares(own_text, name))):
                continue
            use = next(use for use in pattern.finditer(text) if use[1] == name)
            best = next(header for header in known[name] if path.suffix != ".c" or header.endswith(".h"))
            yield text.count("\n", 0, use.start(1)) + 1, prefix + name, best


def sources():
    named = subprocess.run(["git", "ls-files", "-z", "--", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in named.split("\0") if name.endswith((".c", ".cc", ".h"))]


def main():
    found = False
    for path in [Path(name).resolve() for name in sys.argv[1:]] or sources():
        for line, name, header in sorted(complaints(path)):
            print(f"{os.path.relpath(path, ROOT)}:{line}: uses {name} but does not include <{header}>")
            found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
