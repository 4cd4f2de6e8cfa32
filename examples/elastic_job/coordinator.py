"""Forms rounds of workers that train together, through etcd: between min_workers and max_workers members each.

The keys of a run, under /elastic_job/<run_id>/:

    workers/<name>   {"address": ..., "wants": n}       a live worker, and the round that it wants or is in; expires with its lease
    round            {"number": n, "members": [...]}    the last round; a member's rank is its index in the list
    done             true                               the training is complete

A worker that needs a round wants the one after the last. When every live worker wants it, and none has joined for LAST_CALL_SECONDS,
the oldest worker writes the round. A worker that died or is stopped does not renew its lease, so its key expires.
"""

import os
import re
import socket
import threading
import time
from types import SimpleNamespace

import persia_metrics.torchelastic.events as events
import persia_metrics.torchelastic.metrics as metrics
from etcd import Etcd, EtcdError
from process_group import GroupBroken, ProcessGroup

LEASE_SECONDS = 2
LAST_CALL_SECONDS = 0.3
URL = re.compile(r"etcd://([^/?]+):(\d+)/([\w.-]+)\?min_workers=(\d+)&max_workers=(\d+)(?:&timeout=(\d+))?")


class Coordinator:
    def __init__(self, init_method, process_group_timeout=60000):
        """`init_method`: matches URL; its timeout is the time in seconds that etcd may not answer.

        `process_group_timeout`: the milliseconds that a member may take to answer. Raises EtcdError if etcd does not answer.
        """
        host, port, self.run_id, *numbers = URL.fullmatch(init_method).groups("10")
        self._min, self._max, timeout = map(int, numbers)
        self._etcd, self._prefix = Etcd(f"{host}:{port}", timeout), f"/elastic_job/{self.run_id}/"
        self._look()  # raises if etcd does not answer
        with socket.create_connection((host, port), timeout) as towards_etcd:
            self.group = ProcessGroup(towards_etcd.getsockname()[0], process_group_timeout / 1000)
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._key, self._lease = f"{self._prefix}workers/{self.name}", None
        self._round, self._waiting, self._since = 0, [], 0.0
        self._reason, self._newcomers, self._done = "start", False, False
        self._changed, self._failure = threading.Event(), None
        for loop in (self._keep_alive, self._watch):
            threading.Thread(target=self._forever, args=[loop], daemon=True).start()

    @metrics.prof
    def rendezvous_barrier(self):
        """Waits for a round with this worker. Returns its rank and the world size, or None if the training is complete."""
        self.group.close()
        self._round = 0
        self._enter("RENDEZVOUS")
        self._check()
        view, wanted = self._look(), 0
        while not wanted or view.number < wanted or self.name not in view.members:
            if not wanted or view.number >= wanted or self.name not in view.workers:
                wanted = view.number + 1
                self._register(wanted)
            else:
                self._write_round(view)
                self._changed.wait(LAST_CALL_SECONDS)
            self._changed.clear()
            view = self._look()
            if view.done:
                return None
        self._round = view.number
        if self._is_broken(view):
            raise GroupBroken("a member left before the others met")
        rank, world_size = view.members.index(self.name), len(view.members)
        self.group.connect(view.number, rank, world_size, view.workers[view.members[0]]["address"])
        self._enter("HEALTHY", rank=rank, world_size=world_size, round=view.number)
        return rank, world_size

    def should_rendezvous(self):
        """Whether all members should meet again, because a worker wants to join and there are fewer than max_workers."""
        self._check()
        meet = self.group.broadcast(self._newcomers)
        self._reason = "a worker came" if meet else self._reason
        return meet

    def should_stop_training(self):
        return self._done

    def signal_training_done(self):
        self._etcd.put_if(self._prefix + "done", True, 0, self._key)
        self._done = True
        self._enter("SUCCEEDED")

    def on_error(self, error):
        """Called after GroupBroken. Sets the reason of the next rendezvous."""
        self._reason = str(error)

    def _check(self):
        if self._failure:
            raise self._failure

    def _enter(self, status, **place):
        events.record(f"worker.status.{status}", metadata={"worker": self.name, "reason": self._reason, **place})

    def _register(self, wants):
        value = {"address": self.group.address, "wants": wants}
        while self._lease is None or not self._etcd.put(self._key, value, self._lease):
            self._lease = self._etcd.lease(LEASE_SECONDS)

    def _look(self):
        """The run's state in etcd."""
        keys, revision = self._etcd.get(self._prefix)
        view = SimpleNamespace(workers={}, number=0, members=[], modified=0, done=False, revision=revision)
        for name, value, modified in keys:
            what, _, worker = name.removeprefix(self._prefix).partition("/")
            if what == "workers":
                view.workers[worker] = value
            elif what == "round":
                view.number, view.members, view.modified = value["number"], value["members"], modified
            view.done |= what == "done"
        view.waiting = [name for name, worker in view.workers.items() if worker["wants"] > view.number]
        return view

    def _write_round(self, view):
        """Writes the next round, if it is due and this worker is the oldest."""
        if view.waiting != self._waiting:
            self._waiting, self._since = view.waiting, time.monotonic()
        complete = self._min <= len(view.waiting) == len(view.workers) and time.monotonic() - self._since >= LAST_CALL_SECONDS
        if complete and view.waiting[0] == self.name:
            value = {"number": view.number + 1, "members": view.waiting[: self._max]}
            self._etcd.put_if(self._prefix + "round", value, view.modified, self._key)

    def _is_broken(self, view):
        """Whether this worker's round cannot continue."""
        gone = set(view.members) - set(view.workers) | set(view.members) & set(view.waiting)
        return self._round > 0 and (view.number != self._round or bool(gone))

    def _watch(self):
        view = self._look()
        self._newcomers = len(view.members) < self._max and not set(view.waiting) <= set(view.members)
        self._done |= view.done
        if self._is_broken(view):
            self.group.abort()
        self._changed.set()
        next(self._etcd.changes(self._prefix, view.revision + 1), None)

    def _keep_alive(self):
        lease = self._lease
        if lease and not self._etcd.keep_alive(lease):  # this process was stopped, for example, and the others continued
            self.group.abort()
        time.sleep(LEASE_SECONDS / 4)

    def _forever(self, loop):
        while True:
            try:
                loop()
            except EtcdError as error:
                self._failure = error
                self.group.abort()
                self._changed.set()
