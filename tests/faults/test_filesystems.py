"""No /proc, and a /dev/shm that is missing, read-only, small, full, or another's."""

import needs
import pytest
from cases import BOTH, DIRECTORY, LONG, WAYS, run_all, scenario

pytestmark = pytest.mark.needs("namespaces")
_KIB = 1 << 10
_SEGMENTS = "/dev/shm/segments"


def _mounted(name, way, result, setup, segments=_SEGMENTS, **more):
    """A case of the scenario in its own namespace, after `setup`. Its mounts disappear with it, so the segments are copied out."""
    script = (
        f'cd {DIRECTORY} && mount --make-rprivate / && {{ {setup}; }} >&2 || exit 90\n(cd / && "$@")\ncode=$?\n'
        f"cp --sparse=always {segments}/*.seg . 2>/dev/null\nexit $code"
    )
    ((variable, _),) = WAYS[way][1].items()
    return scenario(name, way, needs.in_namespaces("sh", "-c", script, "sh"), stdout=result, env={variable: segments}, **more)


def _tmpfs(options):
    return f"mount -t tmpfs -o {options} tmpfs /dev/shm"


def _filled(free):
    """A /dev/shm of 64 MiB of which `free` bytes are free."""
    return f"{_tmpfs('size=64m')} && fallocate --length {(64 << 20) - free} /dev/shm/others"


def test_no_proc(way, result):
    run_all([_mounted("no /proc", way, result, "mount -t tmpfs tmpfs /proc", segments=DIRECTORY)])


@pytest.mark.parametrize(
    "setup",
    [
        "mount -t tmpfs tmpfs /dev",
        _tmpfs("ro"),
        _tmpfs("mode=755") + f" && mkdir --mode=777 {_SEGMENTS}",
        _tmpfs("mode=755") + f" && touch {_SEGMENTS}",
        _tmpfs("mode=755") + f" && mkdir --mode=700 /dev/shm/other && ln -s other {_SEGMENTS}",
        _tmpfs("mode=755") + f" && mkdir --mode=700 {_SEGMENTS} && mount -t tmpfs -o ro,mode=700 tmpfs {_SEGMENTS}",
        *(_tmpfs(f"nr_inodes={inodes}") for inodes in range(1, 6)),
    ],
)
def test_directory_that_cannot_be_used(way, result, setup):
    run_all([_mounted(setup, way, result, setup)])


def test_little_space(way, result):
    """64 MiB with 14 MiB free are enough for a segment of a few hundred KiB."""
    run_all([_mounted("14 MiB of 64 MiB free", way, result, _filled(14 << 20), complete=BOTH)])


def test_less_and_less_space(way, result):
    steps = 100 if LONG else 20
    free = [1200 * _KIB * i // steps for i in range(steps)]
    full = {"reasons": ("filesystem full",)}
    run_all([_mounted(f"{bytes_} bytes free", way, result, _filled(bytes_), **full) for bytes_ in free])
