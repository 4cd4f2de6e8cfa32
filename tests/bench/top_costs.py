#!/usr/bin/env python3
"""Measures `persia-metrics-agent top` with 100 simulated agents of 8 ranks each.

    PERSIA_BUILD_DIR=$PWD/build/release tests/bench/top_costs.py [AGENTS [CHANGES]]

All agents are ports of this process. Ten times, one rank of one agent dies; the time until the terminal shows it is measured, and at the end
the program's peak memory and its processor time. The last line is what was measured, as JSON.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]


def measure(build):
    answer = subprocess.run([sys.executable, __file__], env={**os.environ, "PERSIA_BUILD_DIR": str(build)}, check=True, capture_output=True, text=True)
    return {f"top/{name}": values for name, values in json.loads(answer.stdout.splitlines()[-1]).items()}


def status(agent, died):
    workers = [
        {"role": "trainer", "instance": f"rep_{rank}", "process": "0", "up": True, "state": "running", "restarts": 0, "last_exit": "",
         "cpu_seconds": time.time() % 1000, "resident_bytes": 5e8, "start_time_ms": 1000, "throughput": 10 + time.time() % 3}
        for rank in range(8)
    ]
    if died is not None:
        workers[0].update(up=False, state="died", last_exit=f"exit_{died}")
    return json.dumps({"job": f"job{agent}", "now_ms": int(time.time() * 1000), "push_interval_seconds": 10, "workers": workers}).encode()


class Terminal:
    """A terminal of 80x24."""

    def __init__(self):
        self._own, self.theirs = pty.openpty()
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._own, self._read)

    def _read(self):
        self._stream.feed(os.read(self._own, 65536))
        self._changed.set()

    async def shows(self, text, is_there=True):
        """Waits until the text is on the screen, or no longer there."""
        deadline = time.monotonic() + 120
        while any(text in line for line in self._screen.display) != is_there:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), deadline - time.monotonic())
            except TimeoutError:
                raise TimeoutError(f"'{text}' {'never came' if is_there else 'stayed'}:\n" + "\n".join(self._screen.display)) from None

    def press(self, keys):
        os.write(self._own, keys)

    def close(self):
        asyncio.get_running_loop().remove_reader(self._own)
        os.close(self._own)
        os.close(self.theirs)


async def costs(program, agents=100, changes=10):
    """Lists by name: seconds until each change was shown, peak memory in MiB, processor time in percent of a processor."""
    died = {}

    def server(agent):
        async def answer(reader, writer):
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                body = status(agent, died.get(agent))
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
            writer.close()

        return answer

    servers = [await asyncio.start_server(server(agent), "127.0.0.1", 0) for agent in range(agents)]
    addresses = [f"127.0.0.1:{one.sockets[0].getsockname()[1]}" for one in servers]
    terminal = Terminal()
    begin = time.monotonic()
    top = subprocess.Popen([program, "top", *addresses], stdin=terminal.theirs, stdout=terminal.theirs, env={**os.environ, "TERM": "xterm"})
    try:
        await terminal.shows(f"{agents} running")
        shown = time.monotonic() - begin
        delays = []
        for change in range(changes):
            died[change * 7 % agents] = change + 10
            changed = time.monotonic()
            await terminal.shows(f"exit_{change + 10}")
            delays.append(time.monotonic() - changed)
            del died[change * 7 % agents]
            await terminal.shows(f"exit_{change + 10}", is_there=False)
            await asyncio.sleep(0.3)  # not right after a poll
        peak = next(line.split()[1] for line in Path(f"/proc/{top.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        stat = Path(f"/proc/{top.pid}/stat").read_text().rsplit(")", 1)[1].split()
        used = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
        result = {"first": [shown], "delay": delays, "memory": [int(peak) / 1024], "processor": [100 * used / (time.monotonic() - begin)]}
        terminal.press(b"q")
        while top.poll() is None:
            await asyncio.sleep(0.05)
        return result
    finally:
        if top.poll() is None:
            top.kill()
        top.wait()
        terminal.close()
        for one in servers:
            one.close()


if __name__ == "__main__":
    AGENT = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release")) / "agent/cli/persia-metrics-agent"
    print(json.dumps(asyncio.run(costs(AGENT, *(int(size) for size in sys.argv[1:])))))
