"""The images that the compose files name, in this machine's Docker engine.

The project's own are built by `docker build` from agent/Dockerfile. Others are pulled. Where no registry answers, they are made here under the
same names, with the label LABEL: Debian by debootstrap, servers from the programs in build/peers or build/tools, installed as in
the official image. Grafana and NATS cannot be made. As a program, it makes all images.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples/demo"))
from engine import docker, run  # noqa: E402
from servers import ROOT, find_program  # noqa: E402

LABEL = "persia-metrics.made-for-tests"
DOCKERFILE = ROOT / "agent/Dockerfile"
COMPOSE_FILES = [ROOT / "docker-compose.yml", *sorted((ROOT / "config/compose").glob("*.yml"))]

_SUITES = {"13": "trixie"}
_MIRROR = "http://deb.debian.org"

# As in the official images: user, folders and entrypoint. They have busybox's wget, which the compose files' health checks call.
_SERVERS = {
    "prom/pushgateway": {
        "programs": ["pushgateway", "prometheus-pushgateway"],
        "installed": "/bin/pushgateway",
        "steps": "RUN mkdir /pushgateway && chown 65534:65534 /pushgateway\nWORKDIR /pushgateway\nUSER 65534",
    },
    "prom/prometheus": {
        "programs": ["prometheus"],
        "installed": "/bin/prometheus",
        "steps": "RUN mkdir /prometheus && chown 65534:65534 /prometheus\nWORKDIR /prometheus\nUSER 65534",
    },
    "victoriametrics/victoria-metrics": {
        "programs": ["victoria-metrics"],
        "installed": "/victoria-metrics-prod",
        "steps": "",
    },
}


def make():
    """Makes missing images. Returns full name by repository: {"prom/prometheus": "prom/prometheus:v3.5.0"}."""
    base = base_image()
    _provide(base, lambda: _debootstrap(base))
    found = {}
    for name in sorted(_named()):
        repository = name.rpartition(":")[0].rpartition("localhost:5000/")[2]
        if repository in _SERVERS:
            _provide(name, functools.partial(_make_server, name, _SERVERS[repository], base))
            found[repository] = name
    for target in ("agent", "demo"):
        repository = "persia-metrics" if target == "agent" else "persia-metrics-demo"
        found[repository] = f"{repository}:{_version()}"
        docker("build", "--file", DOCKERFILE, "--target", target, "--tag", found[repository], ROOT, timeout=3600)
    return found


def base_image():
    """The one image from which agent/Dockerfile starts."""
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE.read_text(), re.MULTILINE)
    names = {stage for _, stage in stages}
    (base,) = {image for image, _ in stages} - names
    return base


def size(name):
    return int(docker("image", "inspect", "--format", "{{.Size}}", name))


def _named():
    """The images of all compose files."""
    services = [service for file in COMPOSE_FILES for service in yaml.safe_load(file.read_text())["services"].values()]
    return {service["image"] for service in services if "image" in service}


def _version():
    return re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]


def _provide(name, make_here):
    """Pulls an image that the engine lacks, or makes it; one that was made here may have to be made again."""
    code, label, _ = run(["docker", "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', name], check=False)
    if code == 0 and not label.strip():
        return  # an official image
    if code != 0 and run(["docker", "pull", "--quiet", name], check=False)[0] == 0:
        return
    make_here()


def _debootstrap(name):
    """A minimal Debian like the official slim image, in which dpkg installs no manuals and translations, and apt keeps no packages."""
    if run(["docker", "image", "inspect", name], check=False)[0] == 0:
        return
    suite = _SUITES[re.fullmatch(r"debian:(\d+)\.\d+-slim", name)[1]]
    left_out = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]
    sources = [f"deb {_MIRROR}/debian {suite} main", f"deb {_MIRROR}/debian {suite}-updates main"]
    sources += [f"deb {_MIRROR}/debian-security {suite}-security main"]
    script = r"""
        set -e
        directory=$(mktemp -d)
        trap 'rm -rf "$directory"' EXIT
        debootstrap --variant=minbase "$1" "$directory" "$2" >&2
        printf '%s\n' "$3" >"$directory/etc/apt/sources.list"
        printf '%s\n' "$4" >"$directory/etc/dpkg/dpkg.cfg.d/docker"
        printf 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };\n' >"$directory/etc/apt/apt.conf.d/docker-clean"
        printf 'Dir::Cache { pkgcache ""; srcpkgcache ""; };\n' >>"$directory/etc/apt/apt.conf.d/docker-clean"
        for pattern in $5; do find "$directory${pattern%/*}" -mindepth 1 ! -type d ! -name copyright -delete; done
        rm -rf "$directory"/var/cache/apt/* "$directory"/var/lib/apt/lists/*
        tar -C "$directory" --numeric-owner -c ."""
    excludes = [f"path-exclude {pattern}" for pattern in left_out] + ["path-include /usr/share/doc/*/copyright"]
    words = ["sh", "-c", script, "sh", suite, f"{_MIRROR}/debian", "\n".join(sources), "\n".join(excludes), " ".join(left_out)]
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen([*root, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as made:
            change = [f"--change=LABEL {LABEL}=1", '--change=CMD ["bash"]', "--change=ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
            subprocess.run(["docker", "import", *change, "-", name + "-new"], stdin=made.stdout, check=True, capture_output=True)
        log.seek(0)
        if made.returncode != 0:
            raise RuntimeError(f"debootstrap {suite}: exit code {made.returncode}\n{log.read()[-3000:]}")
    docker("tag", name + "-new", name)
    docker("rmi", name + "-new")


def _make_server(name, recipe, base):
    """An image of a server, like the official one. The engine's layer cache has it, unless the program has changed."""
    with tempfile.TemporaryDirectory() as directory:
        context = Path(directory)
        shutil.copy(_program(recipe["programs"]), context / "program")
        shutil.copy(shutil.which("busybox"), context / "busybox")
        (context / "Dockerfile").write_text(
            f"FROM {base}\nCOPY busybox /bin/busybox\nRUN ln -s busybox /bin/wget\nCOPY program {recipe['installed']}\n{recipe['steps']}\n"
            f'ENTRYPOINT ["{recipe["installed"]}"]\nLABEL {LABEL}=1\n'
        )
        docker("build", "--tag", name, context)


def _program(names):
    """From build/peers, where `./run peers` builds today's versions, else Debian's."""
    for name in names:
        if (ROOT / "build/peers" / name).exists():
            return ROOT / "build/peers" / name
    for name in names[:-1]:
        if shutil.which(name):
            return shutil.which(name)
    return find_program(names[-1])


if __name__ == "__main__":
    print("\n".join(make().values()))
