"""The Docker engine of this machine, by its own client, and Compose in the version that is installed."""

import functools
import json
import shutil
import subprocess

import yaml
from servers import ROOT, free_port, wait_until


class DockerError(Exception):
    """A command of Docker's client failed."""


def run(words, check=True, timeout=600, **options):
    """Runs a command and returns (exit code, stdout, stderr)."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise DockerError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.returncode, done.stdout, done.stderr


def docker(*words, **options):
    """The output of a docker command, which must succeed."""
    return run(["docker", *words], **options)[1].strip()


def inspect(name, kind="container"):
    return json.loads(docker("inspect", f"--type={kind}", name))[0]


@functools.cache
def compose_command():
    """`docker compose` (version 2 and later), else Debian 12's `docker-compose` (1.29)."""
    if run(["docker", "compose", "version"], check=False)[0] == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise DockerError("neither `docker compose` nor `docker-compose` is installed")


def _target(port):
    """The container's port, of the short syntax or the long one."""
    return port["target"] if isinstance(port, dict) else int(str(port).partition("/")[0].rpartition(":")[2])


class Container:
    """A container, by its id."""

    def __init__(self, identity):
        self.id = identity

    def inspect(self):
        return inspect(self.id)

    def state(self):
        return self.inspect()["State"]

    def running(self):
        return self.state()["Running"]

    def health(self):
        """starting, healthy or unhealthy; None without a health check."""
        return self.state().get("Health", {}).get("Status")

    def exit_code(self):
        return self.state()["ExitCode"]

    def logs(self):
        _, out, err = run(["docker", "logs", self.id])
        return out + err

    def exec(self, *words, check=True):
        """Runs a command in it. Returns (exit code, stdout, stderr)."""
        return run(["docker", "exec", self.id, *words], check=check)

    def kill(self):
        """SIGKILL. The engine does not restart the container, by any restart policy."""
        docker("kill", self.id)

    def start(self):
        docker("start", self.id)

    def stop(self):
        docker("stop", self.id)

    def restart(self):
        docker("restart", self.id)

    def wait(self, seconds=60):
        """Waits for its end. Returns the exit code."""
        return int(docker("wait", self.id, timeout=seconds))

    def wait_healthy(self, seconds=90):
        def healthy():
            state = self.state()
            if state["Health"]["Status"] != "healthy":
                raise ValueError(f"{state}\n{self.logs()[-2000:]}")
            return True

        wait_until(healthy, f"container {self.id[:12]} to be healthy", seconds, interval=0.5)


class Project:
    """A compose project: files of the repository, or of the test, with its own name, on other ports of the host."""

    def __init__(self, name, *files, directory, environment):
        self.name = name
        self._environment = environment
        self._ports = {}
        # Compose reads relative paths from the folder of the first file, as without the option.
        project = [*compose_command(), "--project-name", name, "--project-directory", (ROOT / files[0]).parent]
        self._words = [*project, *(f"--file={ROOT / file}" for file in files)]
        resolved = yaml.safe_load(self.compose("config"))
        for service, description in resolved["services"].items():
            if "ports" in description:
                targets = [_target(port) for port in description["ports"]]
                self._ports |= {(service, target): free_port() for target in targets}
                description["ports"] = [f"127.0.0.1:{self._ports[service, target]}:{target}" for target in targets]
        file = directory / f"{name}.yml"
        file.write_text(yaml.safe_dump(resolved))
        self._words = [*project, f"--file={file}"]

    def url(self, service, port):
        """Where this machine reaches a published port of a service."""
        return f"http://127.0.0.1:{self._ports[service, port]}"

    def compose(self, *words, **options):
        """The output of a compose command, which must succeed."""
        return run([*self._words, *words], env=self._environment, **options)[1]

    def services(self):
        """The services, without those of profiles and those whose image this engine does not have."""
        services = yaml.safe_load(self.compose("config"))["services"]
        here = [name for name, service in services.items() if run(["docker", "image", "inspect", service["image"]], check=False)[0] == 0]
        return [name for name in here if not services[name].get("profiles")]

    def up(self):
        """Starts the services whose image exists."""
        self.compose("up", "--detach", "--no-build", *self.services())

    def restart(self):
        """Restarts all services, the job before the agent. docker-compose 1.29 would restart all in parallel."""
        if compose_command() == ["docker-compose"]:
            self.compose("stop")
            self.compose("start")
        else:
            self.compose("restart")

    def down(self, volumes=False):
        code, out, err = run([*self._words, "down", *(["--volumes"] if volumes else [])], check=False, env=self._environment)
        # Docker 20.10 sometimes keeps the endpoint of a container that is removed, and then the network, until the engine is restarted.
        if code != 0 and ("has active endpoints" not in out + err or self.containers()):
            raise DockerError(f"down: exit code {code}\n{out[-4000:]}{err[-4000:]}")
        if volumes:
            for volume in docker("volume", "ls", "--quiet", "--filter", f"label=com.docker.compose.project={self.name}").split():
                docker("volume", "rm", volume)

    def containers(self):
        """The containers by service, also those that have ended."""
        found = {}
        for identity in docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label=com.docker.compose.project={self.name}").split():
            found[inspect(identity)["Config"]["Labels"]["com.docker.compose.service"]] = Container(identity)
        return found

    def container(self, service):
        return self.containers()[service]

    def logs(self):
        return "\n".join(f"== {name}\n{container.logs()[-3000:]}" for name, container in self.containers().items())
