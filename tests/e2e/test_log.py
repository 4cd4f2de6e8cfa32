"""The agent's log during many failures."""

import re
import signal

from servers import wait_until


def test_a_flood_is_cut_and_counted(job, segments, gateway):
    agent = job.agent()
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
    told = re.search(r"(\d+) more lines of segments.refused were left out in \d+ s; the last said: ", agent.output())
    assert int(told[1]) == 100 - lines
