"""Limits, descriptors, signals and directories as a parent or a machine gives them: in each mode the job goes on, and what can be shown is."""

import subprocess
from pathlib import Path

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from modes import BLOCKED, MODES, PLAIN
from servers import Process, wait_until

SIGNALS = "HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD TSTP TTIN TTOU XCPU XFSZ"
# Lines of shell for what a parent leaves to a program, and the modes in which the values are not shown: "hidden", or "refused" if no agent collects.
LIMITS = {
    "few descriptors": ('ulimit -n 64; exec "$@"', {}),
    "little address space": ('ulimit -v 1500000; exec "$@"', {}),
    # The log goes to a separate file that has reached the limit.
    "small files": ('head -c 65536 /dev/zero >"$0.log"; ulimit -f 64; exec "$@" 2>>"$0.log"', {"exec": "hidden", "library": "hidden"}),
    "no stdin and stderr": ('exec 8<&0 9>&1 <&- 2>&-; exec "$@"', {}),
    "no standard descriptors": ('exec 8<&0 9>&1 <&- >&- 2>&-; exec "$@"', {"once": "hidden"}),
    "signals blocked": (BLOCKED, {}),
    "signals ignored": (f"trap '' {SIGNALS}; exec \"$@\"", {}),
    "no home": ('unset HOME USER LOGNAME PATH LANG TMPDIR; cd /; exec "$@"', {}),
    "umask 0": ('umask 0; exec "$@"', {}),
    "umask 0777": ('umask 0777; exec "$@"', {}),
}
each_mode = pytest.mark.parametrize("mode", MODES)


def check(job, mode, seen, expected):
    seen.worker.tell("count my_app batches 7")
    if expected != "refused":
        samples, log = seen.read()
        assert samples.one("my_app_batches") == (7 if expected == "shown" else None), log
    for path in filter(Path.is_file, job.segments.iterdir()):
        assert b"persia-metrics-agent" not in path.read_bytes(), f"a log line is in {path.name}"
    assert seen.end() == (1 if expected == "refused" and mode == "run" else 0), seen.log()


@each_mode
@pytest.mark.parametrize("limit", LIMITS)
def test_whatever_a_parent_leaves_to_it(lone_job, mode, limit):
    script, unlike = LIMITS[limit]
    check(lone_job, mode, MODES[mode](lone_job, script), unlike.get(mode, "shown"))


@each_mode
@pytest.mark.needs("mounts")
@pytest.mark.parametrize("size", ["small", "full"])
def test_a_tmpfs_that_is(lone_job, mode, size, started, tmp_path):
    """All processes are in one mount namespace, in which the job's directory is a tmpfs of 1 MiB."""
    fill = f"cat /dev/zero >{lone_job.segments}/filling 2>&-; " if size == "full" else ""
    mount = f"mount -t tmpfs -o size=1m,mode=700 tmpfs {lone_job.segments} && {{ {fill}echo ready; exec sleep 600; }}"
    place = Process(["unshare", "--mount", "sh", "-c", mount], tmp_path / "mount.log")
    started(place)
    wait_until(lambda: "ready" in place.output(), "the tmpfs")
    within = f'exec nsenter --mount=/proc/{place.pid}/ns/mnt "$@"'
    unlike = {"run": "refused", "exec": "refused", "once": "hidden", "library": "hidden"} if size == "full" else {}
    check(lone_job, mode, MODES[mode](lone_job, within, within), unlike.get(mode, "shown"))


# A worker of 40 more processes, which count 1 each. They end when its input does.
MANY = f"""#!{PYTHON}
import os, sys
sys.path.insert(0, {str(PYTHON_PACKAGE)!r})
import persia_metrics
batches = persia_metrics.Counter("my_app", "batches")
waits, goes_on = os.pipe()
ready, counted = os.pipe()
for _ in range(40):
    if os.fork() == 0:
        os.close(goes_on)
        batches.inc()
        os.write(counted, b"c")
        os.read(waits, 1)
        os._exit(0)
for _ in range(40):
    os.read(ready, 1)
for line in sys.stdin:
    print("done", line, end="", flush=True)
os.close(goes_on)
for _ in range(40):
    os.wait()
"""


@pytest.mark.parametrize("mode", ["run", "exec"])
def test_processes_for_which_there_are_no_descriptors_are_counted_at_the_end(job, gateway, mode, tmp_path):
    job.worker_program = tmp_path / "many"
    job.worker_program.write_text(MANY)
    job.worker_program.chmod(0o755)
    seen = MODES[mode](job, 'ulimit -n 48; exec "$@"', PLAIN)
    seen.worker.tell("ready?")
    wait_until(lambda: (seen.agent.metrics().one("persia_agent_segments_refused", reason="access") or 0) > 0, "segments without a descriptor")
    samples, _ = seen.read()
    assert 0 < samples.one("my_app_batches") < 40
    assert samples.one("process_open_fds") <= 42, "some are left to the state, pushes and pages"
    assert seen.end() == 0
    assert gateway.metrics().one("my_app_batches") == 40, seen.log()
    assert not list(job.segments.glob("*.seg"))


# In the place of the agent's own files.
STRANGE = {
    "pipes": 'mkfifo "$1/agent.execs" "$1/agent.conf" "$1/agent.state" "$1/agent.groups" "$1/agent.events"',
    "links": 'for name in execs conf state groups events; do ln -s /etc/passwd "$1/agent.$name"; done',
    "a pipe as the lock": 'mkfifo "$1/agent.lock"',
}


@each_mode
@pytest.mark.parametrize("strange", STRANGE)
def test_what_is_in_the_place_of_its_files_is_not_waited_for(lone_job, mode, strange):
    subprocess.run(["sh", "-c", STRANGE[strange], "sh", lone_job.segments], check=True)
    seen = MODES[mode](lone_job)
    is_refused = strange.endswith("lock") and mode in ("run", "exec")
    if is_refused:
        wait_until(lambda: f"{lone_job.segments}/agent.lock is not a regular file; remove it" in seen.log(), "the reason in the log")
    check(lone_job, mode, seen, "refused" if is_refused else "shown")
