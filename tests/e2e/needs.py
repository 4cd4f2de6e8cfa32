"""Requirements of tests on the machine: `@pytest.mark.needs("namespaces")`.

A test whose machine lacks a need is skipped before its fixtures are made. Its message begins with `needs `, by which
`tests/gate` counts it as not run; any other skip counts as failed. Each probe runs once a process and gives the reason
why the need is not met, or "" if it is met; a probe that takes too long is an error. With PERSIA_TEST_EVERY_NEED in the environment, as in
CI, a need that is not met is a failure.
"""

import collections
import functools
import os
import re
import subprocess
import tempfile

import machine
import pytest

# Each group of processes gets all three, so that the probe does the same as the tests. With --kill-child all end with `unshare`.
_UNSHARE = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# Root of a container may lack the right to create namespaces but be allowed to create a user namespace.
_USERS = ((), ("--user", "--map-root-user")) if os.geteuid() == 0 else (("--user", "--map-root-user"),)
# The tests bring up loopback in them, and replace a file of /etc.
_IN_NAMESPACES = 'ip link set lo up && mount --bind /dev/null "$(realpath /etc/resolv.conf)"'


@functools.cache
def _attempt(users):
    """Creates namespaces. Returns "", or the operation that failed."""
    command = ["unshare", *users, *_UNSHARE, "sh", "-c", _IN_NAMESPACES]
    env = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"}
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"{' '.join(command)}: exit status {done.returncode}"


@functools.cache
def users():
    """The options of a user namespace, if the namespaces cannot be created without one."""
    return next((users for users in _USERS if not _attempt(users)), _USERS[0])


def user_namespace():
    """Whether new namespaces need a new user namespace, in which there is only one user."""
    return bool(users())


def in_namespaces(*command):
    """The words that run a command as the first process in new network, mount and pid namespaces."""
    return ["unshare", *users(), *_UNSHARE, *command]


def _namespaces():
    return _attempt(users())


@functools.cache
def _ptrace():
    done = subprocess.run(["strace", "--output=/dev/null", "true"], capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def _other_users():
    return "" if os.geteuid() == 0 else "only root can start processes of other users"


def _fuse():
    with tempfile.TemporaryDirectory() as directory:
        return machine.try_fuse(directory)


@functools.cache
def _memory_cgroup():
    from memory_cgroup import MemoryCgroup

    try:
        MemoryCgroup(64 << 20).remove()
    except OSError as error:
        return str(error)
    return ""


@functools.cache
def _mounts():
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


# Since Linux 6.15, the kernel tells how a process ended that another process has reaped.
@functools.cache
def _pidfd_exits():
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    return "" if release >= (6, 15) else f"Linux {os.uname().release} is older than 6.15"


_PROBES = {
    "fuse": functools.cache(_fuse),
    "memory-cgroup": _memory_cgroup,
    "mounts": _mounts,
    "pidfd-exits": _pidfd_exits,
    "namespaces": _namespaces,
    "other-users": _other_users,
    "ptrace": _ptrace,
}


def pytest_configure(config):
    config.addinivalue_line("markers", f"needs(name, ...): requirements on the machine, without which the test is not run: {', '.join(_PROBES)}")


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("needs"):
            unknown = sorted(set(mark.args) - set(_PROBES))
            if unknown or not mark.args:
                raise pytest.UsageError(f"{item.nodeid}: needs {', '.join(unknown) or 'nothing'}: known needs are {', '.join(_PROBES)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            reason = _PROBES[name]()
            if reason and os.environ.get("PERSIA_TEST_EVERY_NEED"):
                pytest.fail(f"every need is to be met here, and {name} is not: {reason}", pytrace=False)
            if reason:
                pytest.skip(f"needs {name}: {reason}")


def pytest_terminal_summary(terminalreporter):
    counts = collections.Counter(_message(report) for report in terminalreporter.stats.get("skipped", []))
    for message, count in sorted(counts.items()):
        if message.startswith("needs "):
            verb = "test needs" if count == 1 else "tests need"
            terminalreporter.write_line(f"not run: {count} {verb} {message.removeprefix('needs ')}")


def _message(skipped):
    """Why a report's test was skipped."""
    return skipped.longrepr[2].removeprefix("Skipped: ") if isinstance(skipped.longrepr, (tuple, list)) else ""
