"""`persia-metrics-agent top` in a real terminal of 80x24, with real agents, a dead address and a server that lies."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import pyte
import pytest
from conftest import AGENT, environment
from page import start_ranks
from servers import free_port


class Top:
    """`top` on a pty. pyte is the terminal."""

    def __init__(self, arguments, **env):
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._own, theirs = pty.openpty()
        self._size(80, 24)
        self.modes = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            [AGENT, "top", "--interval=200ms", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(**{"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}),
            start_new_session=True,
        )

    def _size(self, columns, rows):
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self._size(columns, rows)
        self.screen.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def press(self, keys):
        os.write(self._own, keys.encode())

    def _read(self, seconds):
        if select.select([self._own], [], [], seconds)[0]:
            data = os.read(self._own, 65536)
            self.raw += data
            self._stream.feed(data)

    def wait_for(self, seen, seconds=30):
        end = time.monotonic() + seconds
        while not seen(self.screen.display):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self._read(0.2)

    def shows(self, *texts):
        self.wait_for(lambda lines: all(any(text in line for line in lines) for text in texts))

    def end(self):
        """Waits for the end of the program, and returns its exit status and the terminal's modes."""
        end = time.monotonic() + 20
        while self.process.poll() is None:
            assert time.monotonic() < end, "top does not end"
            self._read(0.1)
        while select.select([self._own], [], [], 0)[0]:
            self._read(0)
        return self.process.returncode, termios.tcgetattr(self._theirs)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._own)
        os.close(self._theirs)


@pytest.fixture
def top():
    made = []

    def start(*arguments, **env):
        made.append(Top(arguments, **env))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def liar():
    """A server whose answers have no end."""
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def answer():
        while not ended.is_set():
            try:
                peer, _ = server.accept()
            except OSError:
                return
            try:
                peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while not ended.is_set():
                    peer.sendall(b"[" * 65536)
            except OSError:
                pass
            finally:
                peer.close()

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    ended.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def test_top_shows_a_killed_rank_a_dead_address_and_a_liar(job, top, liar):
    agent = job.agent()
    workers = [job.worker(replica=replica) for replica in (1, 2, 10)]
    dead = f"127.0.0.1:{free_port()}"
    seen = top(agent.address, dead, liar, TERM="linux")  # whose codes pyte knows
    seen.shows("trainer rep_1 ", "trainer rep_10 ", "cannot connect", "larger than 4 MiB")
    os.kill(workers[1].pid, signal.SIGKILL)

    def names():
        return [line.split()[1] for line in seen.screen.display if line.startswith("  trainer rep_")]

    # The worst first, then in natural order.
    seen.wait_for(lambda lines: names() == ["rep_2", "rep_1", "rep_10"] and "died" in next(line for line in lines if "  trainer rep_2" in line))
    seen.press("s")
    seen.wait_for(lambda _: names() == ["rep_1", "rep_2", "rep_10"])
    seen.press("r")
    seen.wait_for(lambda _: names() == ["rep_10", "rep_2", "rep_1"])
    seen.press("/rep_10\r")
    seen.wait_for(lambda lines: names() == ["rep_10"] and "filter: rep_10" in lines[23])
    seen.press("\x1b")
    seen.wait_for(lambda _: len(names()) == 3)
    seen.resize(100, 6)
    seen.wait_for(lambda lines: len(lines) == 6 and "q end" in lines[5] and lines[0].startswith("top "))
    seen.press("q")
    code, modes = seen.end()
    assert code == 0
    assert modes == seen.modes


def test_top_shows_and_sorts_by_the_rate_of_each_rank(job, top):
    start_ranks(job, [0.05, 0.4, 0.05])
    agent = job.agent()  # whose first collection has all of them
    seen = top(agent.address, TERM="linux")
    seen.shows("trainer rep_0 ", "trainer rep_1 ", "trainer rep_2 ", "RATE/S")

    def rates():
        column = seen.screen.display[1].index("RATE/S") + len("RATE/S")
        return {line.split()[1]: line[:column].split()[-1] for line in seen.screen.display if line.startswith("  trainer rep_")}

    seen.wait_for(lambda _: all(re.fullmatch(r"[\d.]+", rate) for rate in rates().values()) and 0 < float(rates()["rep_1"]) < 0.5 * float(rates()["rep_0"]))
    for _ in range(2):  # by state, by name, by rate
        seen.press("s")
    seen.wait_for(lambda _: next(iter(rates())) == "rep_1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_the_terminal(top, number):
    seen = top(f"127.0.0.1:{free_port()}")
    seen.shows("cannot connect")
    seen.process.send_signal(number)
    code, modes = seen.end()
    assert code == -number
    assert modes == seen.modes
    assert b"\x1b[?1049l" in seen.raw


def test_a_dumb_terminal_gets_one_frame(top):
    seen = top(f"127.0.0.1:{free_port()}", TERM="dumb")
    assert seen.end()[0] == 0
    assert b"TERM=dumb cannot move the cursor: one frame is printed" in seen.raw
    assert b"\x1b" not in seen.raw


def test_once_without_a_job_says_what_to_do(public_folder):
    # A user without jobs.
    command = ["setpriv", "--reuid=54398", "--clear-groups", public_folder / AGENT.name, "top", "--once"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 1
    assert "no job of this user runs on this machine\npersia-metrics-agent exec -- COMMAND starts one" in done.stdout


def test_once_prints_text_to_a_pipe(job):
    agent = job.agent()
    job.worker(replica=3)
    job.worker(replica=4)

    def frame():
        command = [AGENT, "top", agent.address]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment(), stdin=subprocess.DEVNULL)

    end = time.monotonic() + 30
    while "rep_4" not in frame().stdout:
        assert time.monotonic() < end
    done = frame()
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "2/2 ranks up" in done.stdout
