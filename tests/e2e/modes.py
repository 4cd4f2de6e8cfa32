"""The ways to run the product. What must hold in each of them is tried in each: hostile input, other users, odd values and limits.

A mode has a worker, and what is read of it. A line of shell starts the program that the mode is about, as "$@":

    mode = MODES["run"](job, 'ulimit -n 64; exec "$@"')
    mode.worker.tell("count my_app batches 7")
    samples, log = mode.read()
    assert mode.end() == 0
"""

import itertools
import subprocess

from conftest import PYTHON, Samples, environment
from servers import wait_until

PLAIN = 'exec "$@"'
# As a parent starts it that blocks all signals.
BLOCKED = f"""exec {PYTHON} -c '
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])' "$@"
"""
# A worker whose standard descriptors are closed takes its commands from 8, and answers on 9.
_WORKER = '[ -e /proc/self/fd/8 ] && exec "$@" <&8 >&9; exec "$@"'
_numbers = itertools.count()


def started_by(job, script, program):
    """A program: `program`, started by a line of shell."""
    path = job.directory / f"{program.name}-{next(_numbers)}"
    path.write_text(f'#!/bin/bash\nset -- {program} "$@"\n{script}\n')
    path.chmod(0o755)
    return path


def _worker_of(job, script=PLAIN):
    return started_by(job, script, started_by(job, _WORKER, job.worker_program))


class _WithPages:
    def log(self):
        return self.agent.output()

    def read(self):
        """The samples, none if the agent has ended, and the log."""
        wait_until(lambda: not self.agent.running() or self.agent.metrics(), "the agent's pages")
        if not self.agent.running():
            return Samples(""), self.log()
        self.agent.await_collections(2)
        return self.agent.metrics(), self.log()


class _Run(_WithPages):
    """An agent beside a worker, until that ends. `script` starts the agent, `others` the worker."""

    def __init__(self, job, script=PLAIN, others=PLAIN, flags=(), env=None):
        self.agent = job.agent("--exit-when-idle=0.2s", *flags, program=started_by(job, script, job.agent_program))
        self.worker = job.worker(program=_worker_of(job, others), env=env)

    def end(self):
        """The agent's exit code, after the worker's end. It has to have read the worker."""
        assert self.worker.leave() == 0
        return self.agent.wait()


class _Exec(_WithPages):
    """An agent that runs a worker. `script` starts both."""

    def __init__(self, job, script=PLAIN, others=PLAIN, flags=(), env=None):
        program = started_by(job, script, job.agent_program)
        self.agent = self.worker = job.exec_worker(*flags, program=program, worker=_worker_of(job), env=env)

    def end(self):
        """The command's exit code."""
        return self.worker.leave()


class _Once:
    """A worker, and `once`, which reads it. `script` starts the latter."""

    def __init__(self, job, script=PLAIN, others=PLAIN, flags=(), env=None):
        self._once = [started_by(job, script, job.agent_program), "once", *job.flags("off", flags)]
        self.worker = job.worker(program=_worker_of(job, others), env=env)

    def read(self):
        done = subprocess.run(self._once, env=environment(), capture_output=True, text=True, timeout=60, check=False)
        return Samples(done.stdout), done.stderr

    def log(self):
        return self.read()[1]

    def end(self):
        return self.worker.leave()


class _Library(_Once):
    """A worker without an agent. `script` starts the worker; `once` reads afterwards what it has exported."""

    def __init__(self, job, script=PLAIN, others=PLAIN, flags=(), env=None):
        super().__init__(job, others, script, flags, env)

    def log(self):
        return self.worker.output()


MODES = {"run": _Run, "exec": _Exec, "once": _Once, "library": _Library}
READERS = ("run", "exec", "once")
