"""A swarm of one node on this machine's Docker engine, and the stacks that are deployed on it."""

import contextlib
import json
import os
import urllib.parse

from engine import Container, DockerError, docker, run
from servers import ROOT, wait_until

_LOCAL_NETWORK = "docker_gwbridge"


@contextlib.contextmanager
def one_node():
    """Makes the engine a swarm's manager. At the end it leaves the swarm, which ends all stacks."""
    if (state := docker("info", "--format", "{{.Swarm.LocalNodeState}}")) != "inactive":
        raise DockerError(f"this engine belongs to a swarm ({state}); these tests would end it")
    networks = docker("network", "ls", "--format", "{{.Name}}").split()
    docker("swarm", "init", "--advertise-addr", "127.0.0.1")
    try:
        yield
    finally:
        docker("swarm", "leave", "--force")
        if _LOCAL_NETWORK not in networks:
            wait_until(_local_network_is_gone, "the network's removal")


def _local_network_is_gone():
    """The engine removes the containers, which are in this network, a little later. Docker 20.10 sometimes keeps the endpoint of one that
    is removed, and then the network, until the engine is restarted."""
    code, _, why = run(["docker", "network", "rm", _LOCAL_NETWORK], check=False)
    return code == 0 or ("has active endpoints" in why and not docker("ps", "--all", "--quiet"))


class Task:
    """A task as the manager knows it now: `service` without the stack's name, `state`, and `addresses` in the stack's networks."""

    def __init__(self, service, description):
        self.service = service
        self.id = description["ID"]
        status = description["Status"]
        self.state = status["State"]
        self.error = status.get("Err", "")
        self.exit_code = status.get("ContainerStatus", {}).get("ExitCode")
        self.wanted = description["DesiredState"]
        self.container = Container(status.get("ContainerStatus", {}).get("ContainerID"))
        attachments = description.get("NetworksAttachments") or []
        self.addresses = [address.partition("/")[0] for each in attachments for address in each["Addresses"]]

    def __repr__(self):
        return f"{self.service}: {self.state}, wanted {self.wanted}, exit code {self.exit_code} {self.error}"


class Stack:
    """Files of the repository, or of a test, deployed under a name."""

    def __init__(self, name, **environment):
        self.name = name
        self._environment = {**os.environ, **environment}

    def deploy(self, *files):
        words = [word for file in files for word in ("--compose-file", ROOT / file)]
        # Images are in the engine, and there is no registry to ask for their digests.
        run(["docker", "stack", "deploy", "--resolve-image", "never", *words, self.name], env=self._environment)

    def remove(self):
        """Removes the stack with its volumes, also after the engine has left the swarm."""
        run(["docker", "stack", "rm", self.name], check=False)
        of_stack = f"label=com.docker.stack.namespace={self.name}"
        wait_until(lambda: not docker("ps", "--all", "--quiet", "--filter", of_stack), f"the end of stack {self.name}", 60)
        if volumes := docker("volume", "ls", "--quiet", "--filter", of_stack).split():
            docker("volume", "rm", *volumes)

    def tasks(self):
        """All tasks of its services, also those that have ended."""
        services = docker("stack", "services", "--quiet", self.name).split()
        described = json.loads(docker("service", "inspect", *services))
        names = {each["ID"]: each["Spec"]["Name"].removeprefix(f"{self.name}_") for each in described}
        listed = docker("stack", "ps", "--quiet", "--no-trunc", self.name).split()
        # Without those that have just been removed.
        tasks = json.loads(run(["docker", "inspect", "--type=task", *listed], check=False)[1])
        # Tasks of a removed service are listed for a while.
        return [Task(names[each["ServiceID"]], each) for each in tasks if each["ServiceID"] in names]

    def running(self, service):
        """The running task of a service; ValueError if there is none."""
        (task,) = [each for each in self.tasks() if (each.service, each.state, each.wanted) == (service, "running", "running")]
        return task

    def get(self, service, port_and_path):
        """The answer of a server of the stack, by its image's wget. ValueError if there is none."""
        wget = ["wget", "-q", "-O", "-", f"http://127.0.0.1:{port_and_path}"]
        code, out, err = self.running(service).container.exec(*wget, check=False)
        if code != 0:
            raise ValueError(f"{service}: {err[-500:]}")
        return out

    def targets(self):
        """{(scrape job, URL, health)} of the stack's Prometheus."""
        found = json.loads(self.get("prometheus", "9090/api/v1/targets?state=active"))["data"]["activeTargets"]
        return {(each["scrapePool"], each["scrapeUrl"], each["health"]) for each in found}

    def query(self, expression):
        """Value by the labels of each series."""
        answer = json.loads(self.get("prometheus", "9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in answer["data"]["result"]}
