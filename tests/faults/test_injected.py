"""The n-th allocation fails, and the n-th call of each function of files, memory and threads."""

import errno
import re
import subprocess

import cases
import pytest
from cases import BOTH, INJECT, LONG, run_all, scenario

# Until the scenario passes without a failure, so a few more than it calls when nothing fails.
_MORE = 2
# Of the errors that a filesystem, a limit or a policy gives.
_ERRORS = ("ENOSPC", "EIO", "EMFILE", "EACCES")
_ERRORS_OF = {"mmap": ("ENOMEM", "EACCES", "EIO"), "munmap": ("ENOMEM",), "madvise": ("ENOMEM", "EAGAIN"), "fcntl": ("EAGAIN", "ENOLCK", "EIO")}
# Why something is then refused.
_REASONS = {
    ("malloc", "ENOMEM"): "out of memory",
    ("mmap", "ENOMEM"): "out of memory",
    ("open", "EMFILE"): "descriptor limit",
    ("open", "EACCES"): "file inaccessible",
    ("fallocate", "ENOSPC"): "filesystem full",
    ("posix_fallocate", "ENOSPC"): "filesystem full",
}
_FUNCTIONS = sorted(
    "open openat fopen fopen64 mkdirat faccessat fsync fstat stat fstatvfs fchmod fchmodat fcntl ftruncate posix_fallocate fallocate read pread write writev "
    "pwrite mmap munmap madvise linkat rename unlink unlinkat renameat dup getrandom pthread_key_create pthread_setspecific "
    "pthread_create memfd_create readlink close on_exit poll".split()
)


def _fault(function, at, error, way, result):
    env = {"LD_PRELOAD": str(INJECT), "FAULTS": f"{function}:{at}:{getattr(errno, error)}"}
    reason = _REASONS.get((function, error))
    more = {"reasons": (reason,)} if reason else {}
    return scenario(f"{function} fails with {error} at call {at}", way, env=env, stdout=result, **more)


def _judge(cases_of, calls):
    outcomes = run_all(cases_of)
    hit = sum(outcome.hits > 0 for outcome in outcomes)
    # Texts of another length, such as a process id's, take one allocation more or less.
    assert hit >= 0.8 * len(outcomes) - 4 * _MORE, f"{hit} of {len(outcomes)} cases met their fault; the scenario calls {calls}"


def test_nothing_fails(way, result):
    """Without a fault all is exported, and no line is logged."""
    (outcome,) = run_all([scenario("nothing fails", way, stdout=result, complete=BOTH)])
    assert outcome.stderr == ""
    assert set(outcome.counted()) == {"parent", "child"}


def test_each_allocation(way, result, calls):
    count = calls["malloc"]
    assert count > 100
    _judge([_fault("malloc", at, "ENOMEM", way, result) for at in range(1, count + 1 + _MORE)], count)


def test_all_allocations_from_one_on(way, result, calls):
    count = calls["malloc"]
    _judge([_fault("malloc", f"{at}+", "ENOMEM", way, result) for at in range(1, count + 1 + _MORE, 1 if LONG else 7)], count)


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_each_call(function, way, result, calls):
    count = calls[function]
    errors = _ERRORS_OF.get(function, _ERRORS)
    most = count + 1 if LONG else min(count, 24) + 1
    faults = [
        _fault(function, f"{at}{on}", error, way, result)
        for at in range(1, most)
        for error in (errors if LONG else errors[:2])
        for on in ("", "+")
    ]
    _judge(faults, count)


def test_every_function_can_be_made_to_fail():
    """The library calls no function of libc that could fail and that these tests do not know."""
    library = cases.BUILD / "lib/libpersia_metrics.so"
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    imported = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    known = re.compile(
        "_Z|_ITM|_Unwind|__|mem|str|v?sn?printf|abort|free|getenv|get(pid|euid|uid)|clock_|sig|pthread_(mutex|once|sig|self|cond|getspecific|atfork)|"
        "fwrite|fflush|std(out|err)|nanosleep|clock_nanosleep|malloc|calloc|realloc|posix_memalign|aligned_alloc|nearbyint|lround|ldexp|log2|sqrt|isatty|dl"
    )
    unknown = {name for name in imported - set(_FUNCTIONS) if not known.match(name)}
    assert not unknown, f"add these to inject.c, or to what cannot fail: {sorted(unknown)}"
