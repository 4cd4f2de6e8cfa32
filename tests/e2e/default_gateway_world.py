"""Agents for which no gateway is set, while the default's name is unknown, and once it has addresses. Prints what they say as JSON.

Runs in a new network and mount namespace, as dns_world.py: unshare -mn /usr/bin/python3 tests/e2e/default_gateway_world.py DIRECTORY
"""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

from conftest import AGENT, WORKER, Agent, Worker, environment
from dns_world import Names, gateway, resolve_here
from servers import fetch, wait_until

PAGE = "127.0.0.1:19091"
NONE = "no gateway: gateway_address is not set, and its default, metrics_gateway:9091, is unknown here; the values are at "


def short_job(directory, name):
    """What `exec` says of a job that ends at once."""
    command = [AGENT, "exec", f"--job={name}", f"--metrics-dir={directory / name}", f"--listen={PAGE}", "--ip-addr=10.0.0.1", "--", "true"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=30).stderr


def main(directory):
    resolve_here(directory)
    with contextlib.ExitStack() as running:
        names = Names(directory, "metrics_gateway")
        running.enter_context(names.process)
        server = running.enter_context(gateway(directory, "127.0.0.2"))
        seen = {"short_job": short_job(directory, "without")}
        segments = directory / "segments"
        segments.mkdir(mode=0o700)
        command = ["run", "--job=long", f"--metrics-dir={segments}", "--push-interval=0.2", f"--listen={PAGE}", "--ip-addr=10.0.0.1"]
        agent = running.enter_context(Agent(command, directory / "agent.log", environment(), PAGE))
        env = environment(PERSIA_METRICS_DIR=str(segments), PERSIA_JOB_NAME="long", PERSIA_ROLE="trainer")
        worker = running.enter_context(Worker([WORKER], directory / "worker.log", env=env, stdin=subprocess.PIPE))
        worker.tell("count my_app batches 7")
        wait_until(lambda: NONE in agent.output(), "the agent to miss the name")
        wait_until(lambda: agent.metrics().one("my_app_batches") == 7, "the worker's count")
        status = json.loads(fetch(f"http://{PAGE}/api/v1/status")[1])
        seen["status"] = {"state": status["health"]["state"], "delivery": status["delivery"], "gateway": status["gateway"]["address"]}
        seen["log"] = agent.output()
        names.are("127.0.0.2", "127.0.0.3")  # nothing listens at the second
        agent.signal(signal.SIGHUP)
        wait_until(lambda: "\nmy_app_batches{" in fetch(server.url + "/metrics")[1], "the count on the gateway")
        seen["short_job_with_it"] = short_job(directory, "with")
        groups = json.loads(fetch(server.url + "/api/v1/metrics")[1])["data"]
        seen["jobs"] = sorted({group["labels"]["job"] for group in groups})
    print(json.dumps(seen))


main(Path(sys.argv[1]))
