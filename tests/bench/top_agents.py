#!/usr/bin/env python3
"""Measures `persia-metrics-agent top` with 100 simulated agents of 8 ranks each.

    PERSIA_BUILD_DIR=$PWD/build/release tests/bench/top_agents.py [AGENTS]

All agents are ports of this process. Ten times, one rank of one agent dies; the time until the terminal shows it is measured, and at the end
the program's peak memory and its processor time per second.
"""

import asyncio
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

ROOT = Path(__file__).resolve().parents[2]
AGENT = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release")) / "agent/cli/persia-metrics-agent"
CHANGES = 10


def status(agent, died):
    workers = [
        {"role": "trainer", "instance": f"rep_{rank}", "process": "0", "up": True, "state": "running", "restarts": 0, "last_exit": "",
         "cpu_seconds": time.time() % 1000, "resident_bytes": 5e8, "start_time_ms": 1000}
        for rank in range(8)
    ]
    if died is not None:
        workers[0].update(up=False, state="died", last_exit=f"exit_{died}")
    return json.dumps({"job": f"job{agent}", "now_ms": int(time.time() * 1000), "push_interval_seconds": 10, "workers": workers}).encode()


async def main(agents):
    died = {}
    ports = []

    def server(agent):
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            body = status(agent, died.get(agent))
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            writer.close()

        return answer

    servers = [await asyncio.start_server(server(agent), "127.0.0.1", 0) for agent in range(agents)]
    ports = [one.sockets[0].getsockname()[1] for one in servers]
    own, theirs = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    addresses = [f"127.0.0.1:{port}" for port in ports]
    env = {**os.environ, "TERM": "xterm"}
    begin = time.monotonic()
    top = subprocess.Popen([AGENT, "top", *addresses], stdin=theirs, stdout=theirs, env=env)
    seen = b""
    changed = asyncio.Event()

    def read():
        nonlocal seen
        seen += os.read(own, 65536)
        changed.set()

    asyncio.get_running_loop().add_reader(own, read)

    async def shows(text):
        while text not in seen:
            changed.clear()
            await asyncio.wait_for(changed.wait(), 30)

    await shows(f"{agents} running".encode())
    print(f"all {agents} agents shown after {time.monotonic() - begin:.2f} s")
    delays = []
    for change in range(CHANGES):
        seen = b""
        died[change * 7 % agents] = change + 10
        begin = time.monotonic()
        await shows(f"exit_{change + 10}".encode())
        delays.append(time.monotonic() - begin)
        del died[change * 7 % agents]
        await asyncio.sleep(1.3)  # is shown as running again
    files = {line.split(":")[0]: line.split(":")[1].strip() for line in Path(f"/proc/{top.pid}/status").read_text().splitlines()}
    stat = Path(f"/proc/{top.pid}/stat").read_text().rsplit(")", 1)[1].split()
    cpu = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    print(f"a change is shown after {sorted(delays)[CHANGES // 2]:.2f} s, at most {max(delays):.2f} s")
    print(f"memory: {files['VmHWM']} at its peak, {files['Threads']} threads, {cpu:.2f} s of processor time since the start")
    os.write(own, b"q")
    while top.poll() is None:
        await asyncio.sleep(0.05)
    for one in servers:
        one.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
