"""Creates the root of one container of containers.py, and executes its program. Runs as root of new network, mount and pid namespaces."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

_PRIVATE_DEVICES = ("null", "zero", "full", "random", "urandom")
# Initially /proc is the host's; its first process represents the host.
_HOST_NETWORK = "/proc/1/ns/net"


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


def mount(*words):
    run("mount", *words)


def join_network(spec):
    """Creates a pair of interfaces: eth0, and one on the host's bridge."""
    run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", spec["cable"], "netns", _HOST_NETWORK)
    run("nsenter", f"--net={_HOST_NETWORK}", "ip", "link", "set", spec["cable"], "master", "bridge", "up")
    run("ip", "address", "add", f"{spec['address']}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    run("ip", "link", "set", "lo", "up")


def bind(source, target, read_only=False):
    source, target = Path(source), Path(target)
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--rbind", source, target)
    if read_only:
        mount("-o", "remount,bind,ro", target)


def make_root(spec):
    """This machine's /usr and the image's additions, and nothing else of this machine."""
    root = Path(spec["root"])
    mount("-t", "tmpfs", "-o", "mode=0755", "root", root)
    bind("/usr", root / "usr", read_only=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    mount("-t", "tmpfs", "-o", "mode=0755", "programs", root / "usr/local/bin")
    for name, path in spec["programs"].items():
        bind(path, root / "usr/local/bin" / name)
    (root / "etc").mkdir()
    for name, text in spec["etc"].items():
        (root / "etc" / name).write_text(text)
    (root / "proc").mkdir()
    mount("-t", "proc", "proc", root / "proc")
    (root / "dev").mkdir()
    for name in _PRIVATE_DEVICES:
        bind(f"/dev/{name}", root / "dev" / name)
    (root / "dev/fd").symlink_to("/proc/self/fd")
    for target, options in {"dev/shm": "size=64m,mode=1777", **spec["tmpfs"]}.items():
        place = root / target.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "-o", options, "tmpfs", place)
    # A volume may be inside another one.
    for volume in sorted(spec["volumes"], key=lambda each: each["target"]):
        bind(volume["source"], root / volume["target"].lstrip("/"), volume["read_only"])
    if spec["read_only"]:
        mount("-o", "remount,bind,ro", root)
    return root


def as_init(command):
    """Acts as Docker's init: starts the command, forwards signals, and exits with its exit code."""
    child = os.fork()
    if child == 0:
        os.execvpe(command[0], command, os.environ)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: os.kill(child, received))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def main():
    spec = json.loads(sys.argv[1])
    join_network(spec)
    os.chroot(make_root(spec))
    os.chdir("/")
    command = spec["confine"] + spec["command"]
    os.environ.clear()
    os.environ.update(spec["environment"])
    if spec["init"]:
        as_init(command)
    os.execvpe(command[0], command, os.environ)


main()
