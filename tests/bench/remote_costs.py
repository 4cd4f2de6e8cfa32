"""A million samples an interval by remote write: one agent, a job of ten processes, a real VictoriaMetrics beside them."""

import collections
import json
import math
import os
import re
import time
import urllib.parse
from pathlib import Path

from jobs import Agent, Workers, folders
from servers import Server, fetch, find_program, free_port, wait_until

SERIES = 1_000_000
PROCESSES = 10
INTERVAL = 10
INTERVALS = 3


class VictoriaMetrics(Server):
    def __init__(self, directory):
        address = f"127.0.0.1:{free_port()}"
        command = [find_program("victoria-metrics"), f"-storageDataPath={directory / 'victoria'}", f"-httpListenAddr={address}"]
        super().__init__(command, directory / "victoria.log", address, "/health")

    def taken(self):
        """Samples that came by remote write so far."""
        page = fetch(self.url + "/metrics", timeout=60)[1]
        return sum(float(value) for value in re.findall(r'^vm_rows_inserted_total\{type="promremotewrite"\} (\S+)$', page, re.M))

    def processor_seconds(self):
        """So far, in steps of 10 ms."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def rest(self):
        """Waits until it has taken all that was sent at a tick."""
        seen = [0.0, 1.0]

        def stands_still():
            seen[:] = [seen[1], self.taken()]
            return seen[0] == seen[1]

        wait_until(stands_still, "the end of a tick's samples", 60, 1)

    def newest(self, expression):
        """The sum of an expression's current values."""
        answer = json.loads(fetch(f"{self.url}/api/v1/query?query={urllib.parse.quote(expression)}", timeout=60)[1])
        assert answer["data"]["result"], f"nothing is there of {expression}"
        return sum(float(series["value"][1]) for series in answer["data"]["result"])


def measure(build):
    results = collections.defaultdict(list)
    with folders() as (directory, segments), VictoriaMetrics(directory) as database:
        with Workers(build, segments, SERIES, PROCESSES) as workers:
            options = ["--gateway=off", f"--remote-write={database.url}/api/v1/write", f"--push-interval={INTERVAL}", "--history=0"]
            options += ["--max-series=2000000", "--max-series-per-instance=200000"]
            with Agent(build, directory, segments, *options) as agent:
                wait_until(lambda: database.taken() > 3 * SERIES, "the database to know all series", 180, 1)
                database.rest()
                # A tick is just over, so that all of the next one must be there when an interval has gone by.
                taken, began = database.taken(), time.monotonic()
                least = math.inf
                for number in range(INTERVALS):
                    spent, databases = agent.processor_seconds(), database.processor_seconds()
                    workers.change()
                    time.sleep(max(0, began + (number + 1) * INTERVAL - time.monotonic()))
                    results["remote/processor"].append(agent.processor_seconds() - spent)
                    results["remote/database"].append(database.processor_seconds() - databases)
                    former, taken = taken, database.taken()
                    least = min(least, taken - former)
                results["remote/samples"].append(least)
                results["remote/memory"].append(agent.anonymous_mib())
                results["remote/bytes"].append(
                    database.newest("persia_agent_remote_write_bytes_total") / database.newest("persia_agent_remote_write_samples_total")
                )
                results["remote/dropped"].append(database.newest("sum(persia_agent_remote_write_samples_dropped_total)"))
    return results
