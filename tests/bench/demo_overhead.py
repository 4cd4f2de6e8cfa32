"""The overhead of metrics in a real job: the demo job with metrics, and without.

Both jobs of a pair run at the same time and share one processor. So other load on the machine or the host affects both alike. The
difference then varies by 0.7 % from pair to pair; it varies by 5 % if both have both processors, and by 8 % one after the other. Each
processor has its own pair.
"""

import concurrent.futures
import contextlib
import itertools
import math
import os
import statistics
import tempfile
from pathlib import Path

from jobs import clean_environment, free_port
from servers import Gateway, Process, find_built

LEAST_PAIRS = 8
# More pairs are measured until half of the mean's 95 % interval is at most this wide.
HALF_WIDTH = 1.0
MOST_PAIRS = 24
# Some seven seconds for one job alone, so that the agent's start is a small part.
EPOCHS = 3


def measure_pair(build, gateway, directory, processor, first):
    """{"with": seconds, "without": seconds} of processor time, of each job and all its descendants; `first` is started first."""
    seconds = {}
    directory = directory / str(processor)
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as segments, contextlib.ExitStack() as jobs:
        agent = [build / "agent/cli/persia-metrics-agent", "exec", "--job=bench", f"--gateway={gateway.address}"]
        agent += [f"--metrics-dir={segments}", f"--listen=127.0.0.1:{free_port()}", "--"]
        ways = {"with": (agent, clean_environment()), "without": ([], clean_environment(PERSIA_METRICS_ENABLED="0"))}
        running = {}
        for how in sorted(ways, key=lambda how: how != first):
            before, env = ways[how]
            command = ["taskset", "--cpu-list", str(processor), *before, find_built("embedding_job"), f"--epochs={EPOCHS}", f"--report={directory / how}.json"]
            running[how] = Process(command, directory / f"{how}.log", env=env)
            jobs.callback(running[how].stop)
        for how, process in running.items():
            _, status, usage = os.wait4(process.pid, 0)
            process.popen.returncode = os.waitstatus_to_exitcode(status)
            assert process.popen.returncode == 0, f"the job ended with {process.popen.returncode}:\n{process.output()[-2000:]}"
            seconds[how] = usage.ru_utime + usage.ru_stime
    return seconds


def half_width(values):
    """Of the 95 % interval of the mean, by Student's t, whose quantile comes from the normal one's (Cornish-Fisher)."""
    z = statistics.NormalDist().inv_cdf(0.975)
    freedom = len(values) - 1
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return t * statistics.stdev(values) / math.sqrt(len(values))


def measure(build):
    """Percent of processor time that come on top, a number a pair, and the upper end of the mean's 95 % interval."""
    pairs, overhead = [], []
    processors = sorted(os.sched_getaffinity(0))[:LEAST_PAIRS]
    with (
        tempfile.TemporaryDirectory() as directory,
        Gateway(directory) as gateway,
        concurrent.futures.ThreadPoolExecutor(len(processors)) as pool,
    ):

        def measure_pairs(first):
            return list(pool.map(lambda processor: measure_pair(build, gateway, Path(directory), processor, first), processors))

        measure_pairs("without")  # reads files into the page cache
        turns = itertools.cycle(("with", "without"))
        while len(pairs) < LEAST_PAIRS or (half_width(overhead) > HALF_WIDTH and len(pairs) < MOST_PAIRS):
            pairs += measure_pairs(next(turns))
            overhead = [(pair["with"] - pair["without"]) / pair["without"] * 100 for pair in pairs]
    upper = statistics.mean(overhead) + half_width(overhead)
    seconds = {f"demo/{how}": [pair[how] for pair in pairs] for how in ("with", "without")}
    return {"demo/overhead": overhead, "demo/upper": [upper], **seconds}
