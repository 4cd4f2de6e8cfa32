"""An agent whose gateways are one DNS name. A real dnsmasq changes the name's addresses and then fails. Prints the results as JSON.

Runs in a new network and mount namespace, as dns_world.py: unshare -mn /usr/bin/python3 tests/e2e/gateway_names_world.py DIRECTORY
"""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

from conftest import AGENT, WORKER, Agent, Samples, Worker, environment
from dns_world import Names, gateway, resolve_here
from servers import fetch, wait_until

ADDRESSES = ("127.0.0.2", "127.0.0.3", "[::1]")
RANKS = range(12)


def groups(server, job="named"):
    return sum(group["labels"]["job"] == job for group in json.loads(fetch(server.url + "/api/v1/metrics")[1])["data"])


class World:
    def __init__(self, directory, running):
        self.directory, self.running = directory, running
        self.names = Names(directory, "gateways")
        running.enter_context(self.names.process)
        self.gateways = {address: running.enter_context(gateway(directory, address)) for address in ADDRESSES}
        self.segments = directory / "segments"
        self.segments.mkdir(mode=0o700)
        self.expected = 0

    def start(self):
        command = ["run", "--job=named", "--gateway=dns+gateways:9091", f"--metrics-dir={self.segments}"]
        command += ["--push-interval=0.2", "--listen=127.0.0.1:19091", "--ip-addr=10.0.0.1"]
        self.agent = Agent(command, self.directory / "agent.log", environment(), "127.0.0.1:19091")
        self.running.enter_context(self.agent)
        self.workers = []
        for rank in RANKS:
            env = environment(PERSIA_METRICS_DIR=str(self.segments), PERSIA_JOB_NAME="named", PERSIA_ROLE="trainer", REPLICA_INDEX=str(rank))
            worker = Worker([WORKER], self.directory / f"worker-{rank}.log", env=env, stdin=subprocess.PIPE)
            self.workers.append(self.running.enter_context(worker))

    def count(self):
        self.expected += 1
        for worker in self.workers:
            worker.tell("count my_app batches 1")

    def shares(self):
        """The number of ranks of each gateway, once each rank is on one of them with its newest value."""
        shown = {}

        def settled():
            shown.clear()
            for address, server in self.gateways.items():
                values = [value for (name, _), value in Samples(fetch(server.url + "/metrics")[1]).items() if name == "my_app_batches"]
                shown[address] = len(values)
                if any(value != self.expected for value in values):
                    return False
            return sum(shown.values()) == len(RANKS)

        wait_until(settled, "each rank on one gateway")
        return shown

    def run_a_short_job(self):
        """The job's groups on all gateways. The job ends before its agent can know them."""
        command = [AGENT, "exec", "--job=short", "--gateway=dns+gateways:9091", f"--metrics-dir={self.directory / 'short'}"]
        subprocess.run([*command, "--listen=off", "--ip-addr=10.0.0.1", "--", "true"], env=environment(), check=True, timeout=30)
        return sum(groups(server, "short") for server in self.gateways.values())

    def reload(self):
        lookups = self.lookups("success") + self.lookups("failure")
        self.agent.signal(signal.SIGHUP)
        wait_until(lambda: self.lookups("success") + self.lookups("failure") > lookups, "the name to be looked up before its usual time", 10)

    def lookups(self, result):
        return self.agent.metrics().one("persia_agent_gateway_lookups_total", result=result)


def main(directory):
    resolve_here(directory)
    seen = {}
    with contextlib.ExitStack() as running:
        world = World(directory, running)
        world.start()
        wait_until(lambda: "nothing is pushed until it has an address" in world.agent.output(), "the agent to miss the name")
        seen["without_a_name"] = sum(groups(server) for server in world.gateways.values())
        world.count()
        world.names.are(*ADDRESSES[:2])
        world.reload()
        seen["two"] = world.shares()
        world.names.are(*ADDRESSES)
        world.reload()
        wait_until(lambda: world.shares()[ADDRESSES[2]] > 0, "the third gateway to have its share")
        seen["three"] = world.shares()
        world.names.are(*ADDRESSES[1:])
        world.reload()
        wait_until(lambda: groups(world.gateways[ADDRESSES[0]]) == 0, "the gateway that is gone to be left empty")
        seen["without_the_first"] = world.shares()
        seen["of_a_short_job"] = world.run_a_short_job()
        world.names.process.stop()
        world.reload()
        world.count()
        seen["without_a_server"] = world.shares()
        seen["failures"] = world.lookups("failure")
        seen["log"] = world.agent.output()
    print(json.dumps(seen))


main(Path(sys.argv[1]))
