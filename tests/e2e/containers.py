"""Runs the services of a compose file as plain processes, in namespaces as a container engine would make them.

A `Host` has a network with a bridge, a DNS server, a filesystem for named volumes, and a pid namespace, with which all of it ends.
Each `Container` has a network namespace with one address, its own root, which may be read-only, its own pids, and only the user and the
capabilities of its service. It finds the others by their names. This works as root, and as a user who may create user namespaces. Such a
namespace has only one user, so `user:` has no effect there.

Not an engine: images are the built programs and Debian's servers on this machine's /usr. Memory limits are not set.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import needs
from servers import Process, wait_until

_INIT = Path(__file__).with_name("container_init.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NETWORK = "10.89.7"


def _children(pid):
    """The pids of a process's children that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        if int(fields[1]) == pid and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def _only_child(pid, what):
    return wait_until(lambda: (found := _children(pid)) and found[0], what, 10)


class Host(Process):
    """The bridge and the volumes. It ends with its standard input, so also when the tests are killed."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.privileged = not needs.user_namespace()
        self._names = {}
        self._cables = itertools.count()
        self._dns = None
        script = (
            "ip link set lo up && ip link add bridge type bridge && "
            f"ip address add {_NETWORK}.1/24 dev bridge && ip link set bridge up && echo ready && exec cat"
        )
        super().__init__(needs.in_namespaces("sh", "-c", script), self.directory / "host.log", env={**os.environ, "PATH": _PATH}, stdin=subprocess.PIPE)
        try:
            wait_until(self._ready, "the host's network")
        except Exception:
            self.stop()
            raise
        self._first = _only_child(self.pid, "the host's first process")

    def _ready(self):
        if not self.running():
            raise RuntimeError(f"no namespaces can be made here:\n{self.output()}")
        return "ready" in self.output()

    def enter(self, pid=None, *more):
        """The words before a command that runs in a process's namespaces; without one, in the host's."""
        user = [] if self.privileged else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={pid or self._first}", *user, "--net", "--mount", "--pid", *more, "--"]

    def run(self, words, pid=None, *more):
        return subprocess.run(
            self.enter(pid, *more) + [str(word) for word in words],
            env={"PATH": _PATH},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )

    def give_addresses(self, names):
        """A DNS server that gives each name a permanent address."""
        assert self._dns is None, "the names are given"
        self._number(names)
        hosts = self.directory / "hosts"
        hosts.write_text("".join(f"{address} {name}\n" for name, address in self._names.items()))
        # It may not become another user where there is only one, and does not try with --no-daemon.
        words = ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", f"--addn-hosts={hosts}"]
        words += ["--bind-interfaces", f"--listen-address={_NETWORK}.1"]
        self._dns = Process(self.enter() + words, self.directory / "dns.log", env={**os.environ, "PATH": _PATH})
        wait_until(self._names_are_known, "the DNS server")

    def _number(self, names):
        self._names = {name: f"{_NETWORK}.{number}" for number, name in enumerate(names, 10)}

    def _names_are_known(self):
        if not self._dns.running():
            raise RuntimeError(f"no DNS server:\n{self._dns.output()}")
        return "started, version" in self._dns.output()

    def address(self, name):
        return self._names[name]

    def new_cable(self):
        """A unique name for a container's pair of interfaces."""
        return f"veth{next(self._cables)}"

    def unplug(self, cable):
        """Removes the interfaces at once. The kernel is slow to remove the network of an ended container, which would meanwhile answer
        for the address of its successor."""
        self.run(["ip", "link", "delete", cable])

    def fetch(self, name, port_and_path):
        """The body of a service's answer. OSError if it does not answer yet."""
        script = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode(), end='')"
        result = self.run([sys.executable, "-c", script, f"http://{self.address(name)}:{port_and_path}"])
        if result.returncode != 0:
            raise OSError(result.stderr[-300:])
        return result.stdout

    def volume(self, name, description, owner):
        """A named volume: in memory if the file says so, else a directory that belongs to its first user."""
        path = self.directory / "volumes" / name
        if not path.is_dir():
            path.mkdir(parents=True)
            options = (description or {}).get("driver_opts", {})
            if options.get("type") == "tmpfs":
                words = options["o"] if self.privileged else re.sub(r"\b([ug]id)=\d+", r"\1=0", options["o"])
                result = self.run(["mount", "-t", "tmpfs", "-o", words, "tmpfs", path])
                assert result.returncode == 0, result.stderr
            elif self.privileged:
                os.chown(path, *owner)
        return path

    def stop(self, seconds=10.0):
        self.popen.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(seconds)
        if self._dns is not None:
            self._dns.stop()
        return super().stop(seconds)


class Container(Process):
    """One service, in the form of compose_file.py. `entrypoint`, `programs` and `health` are what its image has."""

    def __init__(self, host, compose, name, *, entrypoint=(), programs=None, health=None):
        service = compose["services"][name]
        self._host, self._cable = host, host.new_cable()
        self._environment = service.get("environment", {})
        self._health = service.get("healthcheck", {}).get("test", ["CMD", *(health or [])])
        uid, gid = (int(part) for part in service["user"].split(":"))
        self._confine = ["setpriv"]
        if host.privileged:
            self._confine += [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        if service.get("cap_drop") == ["ALL"]:
            self._confine += ["--inh-caps=-all", "--bounding-set=-all"]
        if "no-new-privileges:true" in service.get("security_opt", []):
            self._confine += ["--no-new-privs"]
        root = host.directory / "roots" / name
        root.mkdir(parents=True, exist_ok=True)  # it exists if the container is restarted
        tmpfs, volumes = {}, []
        for each in service.get("tmpfs", []):
            target, _, options = each.partition(":")
            tmpfs[target] = options
        for each in service.get("volumes", []):
            if each["type"] == "tmpfs":
                tmpfs[each["target"]] = f"size={each['tmpfs']['size']},mode=1777"
                continue
            source = each["source"]
            if each["type"] == "volume":
                source = host.volume(source, compose["volumes"][source], (uid, gid))
            elif not Path(source).is_dir():
                raise FileNotFoundError(f"{name} mounts {source}, which is not there")
            volumes.append({"source": str(source), "target": each["target"], "read_only": each.get("read_only", False)})
        spec = {
            "cable": self._cable,
            "address": host.address(name),
            "root": str(root),
            "programs": {key: str(path) for key, path in (programs or {}).items()},
            "etc": {
                "hosts": "127.0.0.1 localhost\n",
                "nsswitch.conf": "hosts: files dns\n",
                "resolv.conf": f"nameserver {_NETWORK}.1\n",
                "passwd": "root:x:0:0::/root:/bin/sh\n",
                "group": "root:x:0:\n",
            },
            "tmpfs": tmpfs,
            "volumes": volumes,
            "read_only": service.get("read_only", False),
            "init": service.get("init", False),
            "confine": self._confine,
            "command": [*entrypoint, *service.get("command", [])],
            "environment": {"PATH": _PATH, **self._environment},
        }
        words = [*host.enter(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, _INIT, json.dumps(spec)]
        super().__init__(words, host.directory / f"{name}.log", env={**os.environ, "PATH": _PATH})
        self.name = name

    def _first(self):
        """Its first process: nsenter has a child in the host's pid namespace, which makes the one here, and has it as its child."""
        return _only_child(_only_child(self.pid, f"{self.name}'s namespaces"), f"{self.name}'s first process")

    def health(self):
        """Runs its health check as an engine would; returns exit code and output."""
        kind, *words = self._health
        assert kind == "CMD", kind
        environment = [f"{key}={value}" for key, value in self._environment.items()]
        result = self._host.run([*self._confine, "env", *environment, *words], self._first(), "--root", "--wd")
        return result.returncode, result.stdout + result.stderr

    def terminate(self):
        """Sends SIGTERM to the first process, as `docker stop` does first."""
        os.kill(self._first(), signal.SIGTERM)

    def kill(self):
        """As `docker kill`: all its processes end with the first one."""
        os.kill(self._first(), signal.SIGKILL)
        self.wait(10)

    def wait(self, seconds=30.0):
        """Waits for its exit code. Its address is free then."""
        code = super().wait(seconds)
        self._host.unplug(self._cable)
        return code

    def stop(self, seconds=10.0):
        """As `docker stop`: SIGTERM to the first process, which ends the others."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # it may end by itself
            if self.running():
                self.terminate()
                self.popen.wait(seconds)
        return super().stop(0.1)


def why_not():
    """Creates a host with one container. Returns the reason if this is not possible here, else ""."""
    service = {"user": "10001:10001", "command": ["true"], "cap_drop": ["ALL"], "read_only": True, "tmpfs": ["/tmp:mode=1777"]}
    with tempfile.TemporaryDirectory(prefix="persia-e2e-probe-") as directory:
        os.chmod(directory, 0o755)
        try:
            with Host(directory) as host:
                host._number(["probe"])
                with Container(host, {"services": {"probe": service}}, "probe") as container:
                    if container.wait(30) == 0:
                        return ""
                    return _last_line(container.output())
        except RuntimeError as error:
            return _last_line(str(error))


def _last_line(text):
    return (text.strip().splitlines() or ["no output"])[-1]
