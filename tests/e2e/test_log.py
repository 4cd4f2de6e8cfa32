"""The agent's log during many failures."""

import os
import re
import signal
import subprocess

import pytest
from conftest import AGENT, environment
from servers import free_port, wait_until


def test_a_flood_is_cut_and_counted_before_the_last_line(job, segments, gateway, tmp_path):
    agent = job.agent(f"--report={tmp_path}/page.html")
    gateway.wait_for("persia_agent_segments", 0, state="live")
    for number in range(100):
        draft = segments / f"{number}.draft"
        draft.write_text("no segment" * 1000)
        draft.rename(segments / f"{number}.seg")
    gateway.wait_for("persia_agent_segments_refused", 100, reason="magic")
    lines = agent.output().count("is not read")
    assert 5 <= lines < 20, "five, and one more for each twelve seconds"
    wait_until(lambda: agent.metrics().one("persia_agent_log_lines_suppressed_total") == 100 - lines, "what was left out")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    told = re.search(r"(\d+) more lines of segments.refused were left out(?: in \d+ s)?; the last said: ", agent.output())
    assert int(told[1]) == 100 - lines
    assert agent.output().endswith(f"the page is in {tmp_path}/page.html\n")


@pytest.mark.parametrize("verb", ["run", "exec"])
def test_a_reader_of_stderr_that_hangs_stops_nothing(job, gateway, verb):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    command = ["--", "sh", "-c", "read word; exit 3"] if verb == "exec" else []
    arguments = [AGENT, verb, *job.flags(f"127.0.0.1:{free_port()}", []), *command]
    agent = subprocess.Popen(arguments, env=environment(), stdin=subprocess.PIPE, stderr=writer)
    os.close(writer)
    try:
        worker = job.worker()
        worker.tell("count my_app batches 4")
        gateway.wait_for("my_app_batches", 4)
        worker.tell("count my_app batches 5")
        worker.leave()
        agent.stdin.close() if verb == "exec" else agent.terminate()
        assert agent.wait(30) == (3 if verb == "exec" else 0)
        assert gateway.metrics().one("my_app_batches") == 9
    finally:
        agent.kill()
        agent.wait()
        os.close(reader)
