"""The members of one round, joined by sockets in a star around rank 0. Messages are lines of JSON, which keeps floats exact.

Thread safety: `abort` from any thread, all else from one.
"""

import contextlib
import json
import socket
import time


class GroupBroken(RuntimeError):
    """A member left or does not answer; the others must meet again."""


class ProcessGroup:
    def __init__(self, host, timeout):
        """`host`: the address at which other members reach this one. `timeout`: the seconds that a member may take to answer."""
        self._listener = socket.create_server((host, 0), backlog=128)
        self._listener.settimeout(0.1)
        self._timeout, self._links, self._aborted = timeout, {}, False
        self.address = self._listener.getsockname()
        self.rank, self.world_size = 0, 1

    def connect(self, number, rank, world_size, root):
        """Joins the members of round `number`; `root` is the address of rank 0."""
        self.close()
        self.rank, self.world_size, self._aborted = rank, world_size, False
        if rank > 0:
            with broken(f"rank 0 cannot be reached at {root}"):
                self._links[0] = self._link(socket.create_connection(tuple(root), self._timeout))
            return self._send(0, [number, rank])
        deadline = time.monotonic() + self._timeout
        while len(self._links) < world_size - 1:
            if self._aborted or time.monotonic() > deadline:
                raise GroupBroken(f"round {number}: only {len(self._links) + 1} of {world_size} members joined")
            with contextlib.suppress(OSError, ValueError):  # no connection yet, or one that was closed
                link = self._link(self._listener.accept()[0])
                theirs, rank_there = json.loads(link[1].readline())
                if theirs == number:  # else it is late, for an earlier round
                    self._links[rank_there] = link

    def gather(self, value):
        """Returns the members' values by rank at rank 0, None at the others."""
        if self.rank > 0:
            return self._send(0, value)
        return [value, *(self._receive(rank) for rank in range(1, self.world_size))]

    def broadcast(self, value=None):
        """Returns rank 0's value at all members."""
        for rank in self._links if self.rank == 0 else ():
            self._send(rank, value)
        return value if self.rank == 0 else self._receive(0)

    def average(self, parts):
        """Returns the mean of all members' vectors, given as {number: vector}.

        They are added in the order of their numbers, so the sum does not depend on which member has which vector.
        """
        gathered = self.gather(list(parts.items())) or []
        vectors = [vector for _, vector in sorted(tuple(pair) for pairs in gathered for pair in pairs)]
        return self.broadcast([sum(column) / len(vectors) for column in zip(*vectors)])

    def abort(self):
        """Makes calls of other threads that wait here raise GroupBroken."""
        self._aborted = True
        for connection, _ in list(self._links.values()):
            with contextlib.suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        for connection, lines in self._links.values():
            lines.close()
            connection.close()
        self._links = {}

    def _link(self, connection):
        connection.settimeout(self._timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, connection.makefile("r")

    def _send(self, rank, value):
        with broken(f"rank {rank} cannot be reached"):
            self._links[rank][0].sendall(json.dumps(value).encode() + b"\n")

    def _receive(self, rank):
        with broken(f"rank {rank} left or does not answer"):
            return json.loads(self._links[rank][1].readline())


@contextlib.contextmanager
def broken(what):
    try:
        yield
    except (OSError, ValueError) as error:
        raise GroupBroken(what) from error
