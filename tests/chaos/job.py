"""One job of the chaos test: its workers, its agent, its gateway, and the faults."""

import contextlib
import ctypes
import itertools
import os
import random
import select
import signal
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/demo"))

import goodput  # noqa: E402
import ledger as ledgers  # noqa: E402
from servers import ROOT, Gateway, Process, free_port, processes, wait_until  # noqa: E402

BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
AGENT = BUILD / "agent/cli/persia-metrics-agent"
WORKER = BUILD / "tests/chaos/worker/chaos_worker"
# Two roles of two replicas each; two identities have two processes at a time.
IDENTITIES = [("trainer", 0), ("trainer", 0), ("trainer", 1), ("server", 0), ("server", 0), ("server", 1)]
# Those that mark phases and number their steps.
RANKS = [("trainer", 1), ("server", 1)]
EXEC_ROLE = "launched"
PUSH_INTERVAL = 0.25
# Files that an agent leaves in the directory when it ends.
_AGENTS_FILES = {"agent.conf", "agent.lock", "agent.state", "agent.groups", "agent.events", "agent.execs"}
_PR_SET_CHILD_SUBREAPER = 36
_FOREIGN = ("PERSIA_", "TORCHELASTIC_", "REPLICA_INDEX", "RANK", "LOCAL_", "OMPI_", "PMI", "MV2_", "SLURM_")


class Broken(Exception):
    """A process ended or failed without a fault."""


class Job:
    """Processes are started, killed and stopped from the main thread only."""

    def __init__(self, directory, segments, seed, state_elsewhere, other_agent):
        self.directory, self.segments = directory, segments
        self._programs = itertools.cycle([AGENT, other_agent] if other_agent else [AGENT])  # of the agents, in turns
        self.mixes_agents = other_agent is not None
        self.state_elsewhere = state_elsewhere  # the agent's state is in another directory, and has living workers' values, too
        self.ledgers = directory / "ledgers"
        self.ledgers.mkdir()
        self._control = self.ledgers / "control"
        self._control.write_bytes(bytes(4))
        self.totals = ledgers.Totals(ledgers.describe(WORKER))
        self.ranks = goodput.Ranks(RANKS)
        self.kills = {"workers": 0, "agent": 0, "supervised agent": 0, "gateway": 0}
        self.agent_address = f"127.0.0.1:{free_port()}"
        self.gateway_port = free_port()
        self.gateway_address = f"127.0.0.1:{self.gateway_port}"
        self._seeds = random.Random(seed)  # the workers' own
        self._clean = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        self._full = 0
        self.agent = self.gateway = None
        self.launched = False  # whether the agent runs in exec mode
        self.workers = []
        self._open = {}
        # This process becomes the parent of killed workers' children.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)

    # Starting.

    def start(self):
        self.start_gateway()
        self.start_agent(launch=False)
        self.workers = [self._start_worker(identity) for identity in IDENTITIES]

    def start_gateway(self):
        self.gateway = Gateway(self.directory, self.gateway_port)

    def start_agent(self, launch, refuses_segments=False):
        """Starts the agent beside the job, or as the parent of one more worker."""
        flags = {
            "--job": "chaos",
            "--gateway": self.gateway_address,
            "--metrics-dir": self.segments,
            "--mapping-file": Path(__file__).with_name("mapping.yaml"),
            "--listen": self.agent_address,
            "--push-interval": PUSH_INTERVAL,
            "--push-timeout": 5,
        }
        if self.state_elsewhere:
            flags["--state-dir"] = self.directory / "state"
        if refuses_segments:
            flags["--max-segment-bytes"] = "1MiB"  # less than any worker's
        command = [next(self._programs), "exec" if launch else "run", *(f"{flag}={value}" for flag, value in flags.items())]
        environment = self._clean
        if launch:
            self.end_launched()
            command += ["--", WORKER, self.ledgers, self._seed()]
            environment = {**self._clean, "PERSIA_ROLE": EXEC_ROLE, "REPLICA_INDEX": "0"}
        self.agent = Process(command, self.directory / "agent.log", env=environment)
        self.launched = launch

    def _start_worker(self, identity):
        role, replica = identity
        environment = {"PERSIA_METRICS_DIR": str(self.segments), "PERSIA_JOB_NAME": "chaos", "PERSIA_ROLE": role, "REPLICA_INDEX": str(replica)}
        if identity in RANKS:
            environment["CHAOS_STEPS"] = "1"
        return Process([WORKER, self.ledgers, self._seed()], self.directory / "workers.log", env={**self._clean, **environment})

    def _seed(self):
        return str(self._seeds.randrange(1, 2**31))

    # Live processes.

    def living(self):
        """The ledgers of live processes, by pid. Those of dead processes are added to the totals once, and removed."""
        for path in self.ledgers.glob("*.ledger"):
            inode = path.stat().st_ino
            if inode not in self._open:
                self._open[inode] = ledgers.Ledger(path)
        for inode, ledger in list(self._open.items()):
            if not self._alive(ledger, inode):
                self.totals.add(ledger)
                self.ranks.add(ledger)
                ledger.close()
                if self._is_at(ledger.path, inode):
                    ledger.path.unlink()
                del self._open[inode]
        return {ledger.pid: ledger for ledger in self._open.values()}

    def _alive(self, ledger, inode):
        """Whether the ledger's process is alive. The pid may have been reused by another process or thread."""
        if not any(worker.pid == ledger.pid for worker in self.workers):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ledger.pid, os.WNOHANG)  # a child that was adopted
        try:
            status = dict(line.split(":\t", 1) for line in Path(f"/proc/{ledger.pid}/status").read_text().splitlines() if ":\t" in line)
            program = os.readlink(f"/proc/{ledger.pid}/exe")
        except OSError:
            return False
        return status["State"][0] not in "ZX" and int(status["Tgid"]) == ledger.pid and program == str(WORKER) and self._is_at(ledger.path, inode)

    @staticmethod
    def _is_at(path, inode):
        try:
            return path.stat().st_ino == inode
        except OSError:
            return False

    def forked(self):
        """The ledgers of live processes that this one did not start, in the order of their pids."""
        ours = {worker.pid for worker in self.workers}
        return [ledger for pid, ledger in sorted(self.living().items()) if pid not in ours and ledger.role != EXEC_ROLE]

    def await_launched(self):
        """In exec mode: waits until the worker of the agent has a ledger. If the agent has ended, there is none."""
        if self.launched:
            wait_until(lambda: self.launched_workers() or not self.agent.running(), "the ledger of the worker that the agent starts", 60)

    def launched_workers(self):
        return [ledger for _, ledger in sorted(self.living().items()) if ledger.role == EXEC_ROLE]

    # Faults.

    def kill_worker(self, index):
        """Sends SIGKILL, and immediately starts another worker of the same identity."""
        worker = self.workers[index]
        if worker.popen.poll() is not None:
            raise Broken(f"a worker ended by itself with {worker.popen.returncode}:\n{worker.output()[-2000:]}")
        worker.kill()
        self.kills["workers"] += worker.popen.returncode == -signal.SIGKILL
        self.workers[index] = self._start_worker(IDENTITIES[index])

    def kill_worker_at(self, index, state, after, seconds=1.0):
        """As kill_worker, when the worker's ledger has this state, or after `seconds`."""
        path = self.ledgers / f"{self.workers[index].pid}.ledger"
        deadline = time.monotonic() + seconds
        ledger = None
        while time.monotonic() < deadline:
            if ledger is None and path.exists():
                ledger = ledgers.Ledger(path)
            if ledger is not None and ledger.state == state:
                break
        if ledger is not None:
            ledger.close()
        spin_until = time.perf_counter() + after
        while time.perf_counter() < spin_until:
            pass
        self.kill_worker(index)

    def end_worker(self, index):
        """Ends a worker in order, and starts another."""
        worker = self.workers[index]
        ledger = self.living().get(worker.pid)
        if ledger is None:
            return  # not yet at work
        ledger.ask_to_end()
        if worker.wait() != 0:
            raise Broken(f"a worker that was asked to end did so with {worker.popen.returncode}:\n{worker.output()[-2000:]}")
        self.workers[index] = self._start_worker(IDENTITIES[index])

    def kill_by_pid(self, ledger):
        """Sends SIGKILL to a process that is not a child; counts if it was alive."""
        try:
            descriptor = os.pidfd_open(ledger.pid)
        except OSError:
            return  # it has ended, and the number may be that of a thread now
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if poll.poll(0) or os.readlink(f"/proc/{ledger.pid}/exe") != str(WORKER):
                return
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            poll.poll(10_000)
            self.kills["workers"] += ledger.state != ledgers.ENDED
        except (ProcessLookupError, FileNotFoundError):
            pass  # it has ended
        finally:
            os.close(descriptor)

    def kill_agent(self):
        self.agent.kill()
        self.kills["agent"] += self.agent.popen.returncode == -signal.SIGKILL

    def kill_supervised_agent(self):
        """In exec mode: kills the agent, which its supervisor starts again. False: there is none at the moment."""
        for pid, (_, parent, _) in processes():
            with contextlib.suppress(OSError):
                if parent == self.agent.pid and b"exec-collect" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    self.kills["supervised agent"] += 1
                    return True
        return False

    def kill_gateway(self):
        self.gateway.kill()
        self.kills["gateway"] += self.gateway.popen.returncode == -signal.SIGKILL

    def end_launched(self):
        """Workers of an agent in exec mode survive when it is killed."""
        for ledger in self.launched_workers():
            ledger.ask_to_end()
        wait_until(lambda: not self.launched_workers(), "the end of the worker that the agent had started")

    def mind_agent(self):
        """Restarts the agent if it has ended. In exec mode it ends when its worker was killed; any other end is a failure."""
        if self.agent.running():
            return
        code = self.agent.popen.returncode
        if code != -signal.SIGKILL and not (self.launched and code == 128 + signal.SIGKILL):
            raise Broken(f"the agent ended by itself with {code}:\n{self.agent.output()[-4000:]}")
        self.start_agent(launch=False)

    # The directory's filesystem.

    def set_full(self, full):
        """Announces the state of the directory to the workers, and waits until all have seen it."""
        self._full += 1
        assert self._full % 2 == full
        with open(self._control, "r+b") as file:
            file.write(struct.pack("<I", self._full))
        wait_until(lambda: all(ledger.full_seen == self._full for ledger in self.living().values()), "the workers to see the control word", 60)

    @contextlib.contextmanager
    def full_directory(self, leave):
        """Fills all but `leave` bytes of the directory's filesystem for the duration of the block."""
        self.set_full(True)
        filler = self.segments / "filler"
        with open(filler, "wb") as file:
            self._take_all(file, leave)
        try:
            yield
        finally:
            filler.unlink()
            self.set_full(False)

    def _take_all(self, file, leave):
        while True:
            status = os.statvfs(self.segments)
            wanted = status.f_bavail * status.f_bsize - leave
            if wanted <= 0:
                return
            with contextlib.suppress(OSError):  # the workers have used some of it
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, wanted)

    # Ending.

    def finish(self):
        """Ends the workers, then the agent, in order. The gateway keeps the final values."""
        for ledger in self.living().values():
            if ledger.role != EXEC_ROLE:
                ledger.ask_to_end()
        for worker in self.workers:
            # A process without a ledger is asked when it has one.
            wait_until(lambda: self._ended(worker), "the end of the workers", 60)
        self.workers = []
        wait_until(lambda: not self.forked(), "the end of the forked workers", 60)
        self.await_launched()
        if self.launched:
            for ledger in self.launched_workers():
                ledger.ask_to_end()
        else:
            self.end_launched()
            wait_until(lambda: not self.segment_files(), f"files of dead processes to go from {self.segments}", 20)
            self.agent.signal(signal.SIGTERM)
        code = self.agent.wait(60)
        if code != 0:
            raise Broken(f"the agent ended with {code}:\n{self.agent.output()[-4000:]}")
        wait_until(lambda: not self.living(), "the end of all workers", 20)
        if self.stray_files():
            raise Broken(f"files are left in {self.segments}: {self.stray_files()}")

    def _ended(self, worker):
        ledger = self.living().get(worker.pid)
        if ledger is not None:
            ledger.ask_to_end()
        return not worker.running()

    def stray_files(self):
        """Files in the directory that an ended agent should not leave there."""
        return sorted(path.name for path in self.segments.iterdir() if path.name not in _AGENTS_FILES)

    def segment_files(self):
        return sorted(path.name for path in self.segments.glob("*.seg"))

    def clear(self):
        """Ends all remaining processes."""
        for process in [*self.workers, self.agent, self.gateway]:
            if process is not None:
                process.signal(signal.SIGCONT)
                process.signal(signal.SIGKILL)
                process.popen.wait()
        for ledger in self.living().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(ledger.pid, signal.SIGKILL)
