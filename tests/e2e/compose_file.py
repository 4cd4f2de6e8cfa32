"""Reads a compose file as docker-compose resolves it, in one form for all versions of docker-compose.

Compose 1.29 (Debian 12) prints commands, ports and volumes as the file has them, and Compose 2 (Debian 13) prints them in the long
syntax. The form here: commands and health checks are lists of words, ports and volumes are mappings, sizes are bytes, and values of
the environment are text. Services of every profile are included.
"""

import copy
import functools
import re
import shlex
import subprocess

import yaml
from servers import ROOT

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def unexpected_warnings(name, stderr):
    """docker-compose's stderr, without the one warning that config/compose/swarm.yml must cause, since it is for `docker stack deploy`:
    Compose 2 calls its `version` obsolete, and Compose 1 ignores its configs."""
    if name != "config/compose/swarm.yml":
        return stderr
    obsolete = (
        r'time="[^"]*" level=warning msg="' + re.escape(str(ROOT / name)) + r": the attribute `version` is obsolete, it will be ignored, "
        r'please remove it to avoid potential confusion"\n'
    )
    ignored = (
        r"Some services \(prometheus\) use the 'configs' key, which will be ignored\. Compose does not support 'configs' configuration - "
        r"use `docker stack deploy` to deploy to a swarm\.\n"
    )
    return re.sub(rf"\A(?:{obsolete}|{ignored})\Z", "", stderr)


@functools.cache
def _resolved(name):
    """docker-compose takes more than a second."""
    # Without a profile, Compose 2 leaves the services of profiles out.
    command = ["docker-compose", "--profile", "*", "-f", ROOT / name, "config"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, unexpected_warnings(name, result.stderr)) == (0, "")
    return normalised(yaml.safe_load(result.stdout))


def load(name):
    """The services and volumes of one of our compose files. The caller may change them."""
    return copy.deepcopy(_resolved(name))


def normalised(compose):
    volumes = {name: dict(volume or {}) for name, volume in compose.get("volumes", {}).items()}
    for name, volume in volumes.items():
        if volume.get("name") == f"{compose.get('name')}_{name}":
            del volume["name"]  # the default, which only Compose 2 prints
    return {"services": {name: _service(service) for name, service in compose["services"].items()}, "volumes": volumes}


def _service(service):
    service = dict(service)
    for key in ("command", "entrypoint"):
        if isinstance(service.get(key), str):
            service[key] = shlex.split(service[key])
    if "environment" in service:
        service["environment"] = {key: value if value is None else str(value) for key, value in service["environment"].items()}
    if "healthcheck" in service:
        service["healthcheck"] = _health_check(service["healthcheck"])
    if "mem_limit" in service:
        service["mem_limit"] = _bytes(service["mem_limit"])
    if "ports" in service:
        service["ports"] = [_port(port) for port in service["ports"]]
    if "volumes" in service:
        service["volumes"] = sorted(map(_mount, service["volumes"]), key=lambda mount: mount["target"])
    if "network_mode" not in service:
        networks = service.get("networks", ["default"])
        service["networks"] = networks if isinstance(networks, dict) else dict.fromkeys(networks)
    return service


def _health_check(check):
    check = dict(check)
    if check.pop("disable", False):
        check["test"] = ["NONE"]
    for key in {"interval", "timeout", "start_period"} & set(check):
        check[key] = _seconds(check[key])
    return check


def _port(port):
    """`host_ip` is "" if the port is open on all addresses, and `published` is None if the engine chooses a port."""
    if isinstance(port, str):
        rest, _, protocol = port.partition("/")
        *before, target = rest.rsplit(":", 2)
        port = {"host_ip": before[0] if len(before) == 2 else "", "published": before[-1] if before else None, "target": target}
        port["protocol"] = protocol or "tcp"
    published = port.get("published")
    return {
        "mode": port.get("mode", "ingress"),
        "host_ip": port.get("host_ip", ""),
        "published": None if published is None else int(published),
        "target": int(port["target"]),
        "protocol": port.get("protocol", "tcp"),
    }


def _mount(volume):
    if isinstance(volume, str):
        source, target, mode = volume.split(":")
        kind, modes = "bind" if source.startswith("/") else "volume", mode.split(",")
        volume = {"type": kind, "source": source, "target": target, "read_only": "ro" in modes}
        if "z" in modes:
            volume["bind"] = {"selinux": "z"}
    mount = {"read_only": False, **volume}
    # The meaning of the short syntax, in Compose 2's long form.
    mount.get("bind", {}).pop("create_host_path", None)
    for key in ("bind", "volume"):
        if mount.get(key) == {}:
            del mount[key]
    if "size" in mount.get("tmpfs", {}):
        mount["tmpfs"] = {**mount["tmpfs"], "size": _bytes(mount["tmpfs"]["size"])}
    return mount


def _bytes(size):
    number, unit = re.fullmatch(r"(\d+)([bkmg]?)b?", str(size).lower()).groups()
    return int(number) * _UNITS[unit]


def _seconds(duration):
    hours, minutes, seconds = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration).groups(default="0")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)
