"""What the metrics cost a job that has something to do: the demo job with them, and without.

Both jobs of a pair run at once and share the processors, slice by slice: what else goes on in the machine meets both. One
after the other they differ by 8 % from pair to pair, whatever the metrics cost; at once by 1.6 %.
"""

import json
import math
import os
import statistics
import tempfile
from pathlib import Path

from jobs import clean_environment, free_port
from servers import Gateway, find_built

PAIRS = 15
# Some seven seconds for one job alone: starting the agent is no large part of it.
EPOCHS = 3
# The 97.5 % quantile of Student's t for 14 degrees of freedom: of the 95 % interval of a mean of 15.
STUDENT_T = 2.145


def start(command, env, log):
    with open(log, "wb") as output:
        return os.posix_spawn(
            str(command[0]),
            [str(word) for word in command],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, output.fileno(), 2)],
        )


def processor_seconds(pid, log):
    """Of the process and all its descendants, and of nothing else, at their end."""
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, f"the job ended with status {status}:\n{Path(log).read_text()[-2000:]}"
    return usage.ru_utime + usage.ru_stime


def measure_pair(build, gateway, directory):
    """{"with": seconds, "without": seconds}"""
    jobs = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
        agent = [build / "agent/app/persia-metrics-agent", "exec", "--job=bench", f"--gateway={gateway.address}"]
        agent += [f"--metrics-dir={segments}", f"--listen=127.0.0.1:{free_port()}", "--"]
        for how, before, env in (("with", agent, clean_environment()), ("without", [], clean_environment(PERSIA_METRICS_ENABLED="0"))):
            report, log = Path(directory) / f"{how}.json", Path(directory) / f"{how}.log"
            report.unlink(missing_ok=True)
            command = [*before, find_built("embedding_job"), f"--epochs={EPOCHS}", f"--report={report}"]
            jobs[how] = start(command, env, log), log, report
        seconds = {how: processor_seconds(pid, log) for how, (pid, log, _) in jobs.items()}
    for _, _, report in jobs.values():
        assert json.loads(report.read_text())
    return seconds


def measure(build):
    """Percent of processor time that come on top, a number a pair, and the upper end of the mean's 95 % interval."""
    with tempfile.TemporaryDirectory() as directory, Gateway(directory) as gateway:
        pairs = [measure_pair(build, gateway, directory) for _ in range(PAIRS)]
    overhead = [(pair["with"] - pair["without"]) / pair["without"] * 100 for pair in pairs]
    upper = statistics.mean(overhead) + STUDENT_T * statistics.stdev(overhead) / math.sqrt(len(overhead))
    seconds = {f"demo/{how}": [pair[how] for pair in pairs] for how in ("with", "without")}
    return {"demo/overhead": overhead, "demo/upper": [upper], **seconds}
