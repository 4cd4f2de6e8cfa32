"""After a shortage has ended, all counts are exported: also those of threads that count while it ends."""

import contextlib
import errno
import re
import struct
from pathlib import Path

import needs
import pytest
from cases import DIRECTORY, INJECT, LONG, WAYS, run_all, scenario
from segment import read_all

# The library tries again once a second, so these cases mostly wait.
_AT_A_TIME = 32
_ONCE = {"open": "EMFILE", "openat": "EMFILE", "mkdirat": "EACCES", "fstat": "EIO", "fstatvfs": "EIO", "fcntl": "ENOLCK", "posix_fallocate": "ENOSPC", "linkat": "ENOSPC"}


def _keys(result):
    return set(re.findall(r"^counted parent (.*) \S+$", result, re.M))


def _has_all(keys):
    """Whether a process has exported all these keys. The process runs: its file may have grown since it was mapped."""

    def true(_, directory, stderr):
        if "waits" not in stderr:
            return False
        with contextlib.suppress(IndexError, struct.error):
            return any(keys <= set(segment.values) for segment in read_all(directory).values())
        return False

    return true


def test_a_call_that_failed_once(way, result, calls):
    cases = []
    for function, error in _ONCE.items():
        for at in range(1, calls[function] + 1):
            env = {"LD_PRELOAD": str(INJECT), "FAULTS": f"{function}:{at}:{getattr(errno, error)}"}
            name = f"{function} fails once with {error}, at call {at}"
            more = {"words": ["wait"], "complete": ("parent",), "until": _has_all(_keys(result))}
            cases.append(scenario(name, way, env=env, **more))
    assert len(cases) > 10
    run_all(cases, _AT_A_TIME)


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("free", [0, 4 << 10, 40 << 10, 64 << 10, 80 << 10, 120 << 10, 160 << 10] + ([200 << 10, 300 << 10] if LONG else []))
def test_space_that_returns(way, result, free):
    """A full tmpfs, from which another's file is deleted while threads count."""
    segments = "/dev/shm/segments"
    script = (
        f"cd {DIRECTORY} && mount --make-rprivate / && mount -t tmpfs -o size=64m tmpfs /dev/shm && "
        f"fallocate --length {(64 << 20) - free} /dev/shm/others || exit 90\n"
        f'(cd / && "$@")\ncode=$?\ncp --sparse=always {segments}/*.seg . 2>/dev/null\nexit $code'
    )
    has_all = _has_all(_keys(result))

    def until(process, _, stderr):
        if "waits" not in stderr:
            return False
        there = Path(f"/proc/{process.pid}/root/dev/shm")
        (there / "others").unlink(missing_ok=True)
        return has_all(process, there / "segments", stderr)

    ((variable, _),) = WAYS[way][1].items()
    more = {"words": ["wait"], "complete": ("parent",), "until": until}
    run_all([scenario(f"{free} bytes free at first", way, needs.in_namespaces("sh", "-c", script, "sh"), env={variable: segments}, **more)])
