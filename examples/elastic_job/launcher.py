"""Keeps this machine's workers running, and publishes their metrics and events, as torchelastic's agent does."""

import ctypes
import os
import signal
import subprocess
import time

import persia_metrics.torchelastic.events as events
from persia_metrics.torchelastic.metrics import put_metric

ROLE = "trainer"
NOT_RETRYABLE = 69  # exit code of a worker that a restart would not help
_PR_SET_PDEATHSIG = 1


class Launcher:
    def __init__(self, command, replicas, max_restarts, ledger):
        """`command`: starts a worker. `max_restarts`: limit for all of this launcher's workers together."""
        self._command, self._left, self._max, self._ledger = command, max_restarts, max_restarts, ledger
        self._workers = {replica: self._start(replica) for replica in replicas}

    def run(self):
        """Runs until all workers have succeeded, or one cannot be restarted. Returns the exit code."""
        code = 0
        while self._workers and code == 0:
            state = "healthy"
            for replica, worker in list(self._workers.items()):
                if worker.poll() is not None:
                    del self._workers[replica]
                    if worker.returncode != 0:
                        state, code = "unhealthy", self._failed(replica, worker.returncode)
            put_metric(f"workers.{ROLE}.{state}", 1)
            put_metric(f"workers.{ROLE}.remaining_restarts", self._left)
            time.sleep(0.1)
        self._finish(code)
        return code

    def stop(self):
        for act in ("terminate", "wait"):
            for worker in self._workers.values():
                getattr(worker, act)()

    def _start(self, replica):
        environment = {**os.environ, "PERSIA_ROLE": ROLE, "REPLICA_INDEX": str(replica)}
        end_with_parent = lambda: ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # noqa: E731
        return subprocess.Popen(self._command, env=environment, preexec_fn=end_with_parent)

    def _failed(self, replica, code):
        """Restarts a worker and returns 0. If a restart is not allowed or would not help, returns the job's exit code."""
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        events.record("worker.status.FAILED", metadata={"replica": replica, "reason": reason, "restarts_left": self._left})
        if self._left == 0 or code == NOT_RETRYABLE:
            return code if code > 0 else 128 - code
        self._left -= 1
        self._workers[replica] = self._start(replica)
        self._ledger.note("restart")
        return 0

    def _finish(self, code):
        how = ("failed" if code else "success") + ("_no_retries" if self._left == self._max else "_with_retries")
        for result in ("success_no_retries", "success_with_retries", "failed_no_retries", "failed_with_retries"):
            put_metric(f"workers.{ROLE}.run_{result}", int(result == how))
        put_metric(f"workers.{ROLE}.run_total", 1)
        put_metric(f"workers.{ROLE}.flakiness", 100 if code else 100 - 100 * (self._left + 1) // (self._max + 1))
        events.record("job.status." + ("FAILED" if code else "SUCCEEDED"), metadata={"restarts_left": self._left, "exit_code": code})
