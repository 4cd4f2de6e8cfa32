"""Two PushGateways under one name, a real dnsmasq, and a Prometheus with the given shipped file: prints its targets as JSON.

Runs in a new network and mount namespace, since Prometheus asks the server of /etc/resolv.conf, at port 53, and both gateways have
port 9091: unshare -mn /usr/bin/python3 tests/e2e/dns_world.py DIRECTORY FILE NAME
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from shipped_prometheus import ShippedPrometheus  # first, because it sets the path of servers
from servers import Process, Server, find_program, wait_until

GATEWAYS = ("127.0.0.2", "127.0.0.3")

os.environ["PATH"] += os.pathsep + "/usr/sbin"  # dnsmasq's folder, which is not in the PATH of other users than root


def resolve_here(directory):
    """Makes 127.0.0.53 the resolver of this namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    own = directory / "resolv.conf"
    own.write_text("nameserver 127.0.0.53\n")
    subprocess.run(["mount", "--bind", own, os.path.realpath("/etc/resolv.conf")], check=True)


def dnsmasq(directory, name):
    # --no-daemon keeps the user; a user namespace has no other.
    command = [find_program("dnsmasq"), "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
    command += ["--listen-address=127.0.0.53", "--bind-interfaces"]
    return Process(command + [f"--host-record={name},{address}" for address in GATEWAYS], directory / "dnsmasq.log")


class Names:
    """A dnsmasq whose answers for one name can be changed. At first it is unknown."""

    def __init__(self, directory, name):
        self._name, self._hosts = name, directory / "hosts"
        self._hosts.write_text("")
        command = [find_program("dnsmasq"), "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
        command += ["--listen-address=127.0.0.53", "--bind-interfaces", f"--addn-hosts={self._hosts}", "--log-facility=-"]
        self.process = Process(command, directory / "dnsmasq.log")
        wait_until(lambda: f"read {self._hosts}" in self.process.output(), "dnsmasq to have begun")

    def are(self, *addresses):
        self._hosts.write_text("".join(f"{address.strip('[]')} {self._name}\n" for address in addresses))
        before = self.process.output().count(f"read {self._hosts}")
        self.process.signal(signal.SIGHUP)
        wait_until(lambda: self.process.output().count(f"read {self._hosts}") > before, "dnsmasq to have read its names")


def gateway(directory, address):
    program = find_program("prometheus-pushgateway")
    command = [program, f"--web.listen-address={address}:9091", "--persistence.file=", "--log.level=warn"]
    return Server(command, directory / f"{address}.log", f"{address}:9091", "/-/ready")


def push(address):
    """Pushes a group of a job with the gateway's name."""
    url = f"http://{address}:9091/metrics/job/job_at_{address}/instance/rep_0"
    urllib.request.urlopen(urllib.request.Request(url, data=b"staleness 3\n", method="PUT"), timeout=10).close()


def main(directory, file, name):
    resolve_here(directory)
    with contextlib.ExitStack() as running:
        running.enter_context(dnsmasq(directory, name))
        for address in GATEWAYS:
            running.enter_context(gateway(directory, address))
            push(address)
        faster = {"refresh_interval: 15s": "refresh_interval: 1s", "interval: 10s": "interval: 1s"}
        prometheus = running.enter_context(ShippedPrometheus(directory, file, faster))

        def found():
            series = [result["metric"] for result in prometheus.query("staleness")]
            targets = prometheus.targets("persia_gateways")
            there = len(series) == 2 and all(target["up"] == "up" for target in targets)
            return {"targets": targets, "series": series} if there else None

        print(json.dumps(wait_until(found, "both gateways' series", 60)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
