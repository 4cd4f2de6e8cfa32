"""What the metrics cost a job that has something to do: the demo job with them, and without."""

import json
import math
import os
import statistics
import tempfile
from pathlib import Path

from jobs import clean_environment, free_port
from servers import Gateway, find_built

PAIRS = 15
EPOCHS = 1
# The 97.5 % quantile of Student's t for 14 degrees of freedom: of the 95 % interval of a mean of 15.
STUDENT_T = 2.145


def processor_seconds(command, env, log):
    """Of the command and all its descendants, and of nothing else."""
    with open(log, "ab") as output:
        pid = os.posix_spawn(
            str(command[0]),
            [str(word) for word in command],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, output.fileno(), 2)],
        )
        _, status, usage = os.wait4(pid, 0)
    assert status == 0, f"{command[0]} ended with status {status}:\n{Path(log).read_text()[-2000:]}"
    return usage.ru_utime + usage.ru_stime


def measure(build):
    """Percent of processor time that come on top, a number a pair, and the upper end of the mean's 95 % interval."""
    job = find_built("embedding_job")
    seconds = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as directory, Gateway(directory) as gateway:
        log = Path(directory) / "job.log"
        for pair in range(PAIRS):
            for how in ("with", "without") if pair % 2 == 0 else ("without", "with"):
                with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
                    report = Path(directory) / "report.json"
                    command = [job, f"--epochs={EPOCHS}", f"--report={report}"]
                    env = clean_environment(PERSIA_METRICS_ENABLED="0")
                    if how == "with":
                        agent = [build / "agent/app/persia-metrics-agent", "exec", "--job=bench", f"--gateway={gateway.address}"]
                        agent += [f"--metrics-dir={segments}", f"--listen=127.0.0.1:{free_port()}", "--"]
                        command = [*agent, *command]
                        env = clean_environment()
                    seconds[how].append(processor_seconds(command, env, log))
                    assert json.loads(report.read_text())
    overhead = [(a - b) / b * 100 for a, b in zip(seconds["with"], seconds["without"])]
    upper = statistics.mean(overhead) + STUDENT_T * statistics.stdev(overhead) / math.sqrt(len(overhead))
    return {"demo/overhead": overhead, "demo/upper": [upper], **{f"demo/{how}": values for how, values in seconds.items()}}
