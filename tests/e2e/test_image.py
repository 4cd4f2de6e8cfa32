"""agent/Dockerfile, as far as that shows without building it: rules that it must keep, each seen to catch a file that breaks it.
`./run image-check` takes the file's steps."""

import re
import shlex
import subprocess
import sys

import pytest
from conftest import AGENT, EMBEDDING_JOB
from servers import ROOT

sys.path.insert(0, str(ROOT / "tests/image"))
import dockerfile  # noqa: E402

FILE = ROOT / "agent/Dockerfile"
HEALTH = ROOT / "agent/healthcheck.sh"


def problems(text, root=ROOT):
    """The problems of a Dockerfile, one per line."""
    stages = dockerfile.parse(text)
    final, names = stages[-1], {stage.name for stage in stages}
    ignored = dockerfile.ignored((root / ".dockerignore").read_text())
    found = []
    for stage in stages:
        if not re.fullmatch(r"[\w./-]+:\d+\.\d+(\.\d+)?(-\w+)?", stage.base):
            found.append(f"{stage.base} is not pinned")
        for step in stage.all("COPY"):
            options, words = step.options()
            if "from" in options and options["from"] not in names:
                found.append(f"there is no stage {options['from']}")
            for source in words[:-1] if "from" not in options else []:
                if not (root / source).exists() or source.split("/")[0] in ignored:
                    found.append(f"there is no {source} to copy")
        for step in stage.all("RUN"):
            if "apt-get install" in step.text and "--no-install-recommends" not in step.text:
                found.append(f"line {step.line}: apt-get install without --no-install-recommends")
            if stage is final and "apt-get update" in step.text and "rm -rf /var/lib/apt/lists/*" not in step.text:
                found.append(f"line {step.line}: apt's lists stay in the layer")
            if re.search(r"apt-get install|apt-get update", step.text) and not re.search(r"apt-get update.*apt-get install", step.text):
                found.append(f"line {step.line}: update and install are different layers, of which one may be old")
            if re.search(r"\b(curl|wget)\b[^|]*\|\s*(ba)?sh|\bsudo\b", step.text):
                found.append(f"line {step.line}: a script from elsewhere, or sudo")
    user = final.last("USER")
    if user is None or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user.text):
        found.append("the image's user is root, or has no number, which Kubernetes needs to know that it is not root")
    if final.last("HEALTHCHECK") is None:
        found.append("no HEALTHCHECK")
    if final.last("CMD") is None or not final.last("CMD").text.startswith("["):
        found.append("no CMD in JSON: a shell would be the first process, and get the signals")
    if len(stages) < 2 or any(re.search(r"\b(g\+\+|cmake|ninja)", step.text) for step in final.all("RUN")):
        found.append("the compiler is in the image")
    return found


def test_dockerfile_keeps_the_rules():
    assert problems(FILE.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("FROM debian:12.11-slim", "FROM debian:latest", "debian:latest is not pinned"),
        ("FROM debian:12.11 AS build", "FROM debian AS build", "debian is not pinned"),
        ("--no-install-recommends libcivetweb1", "libcivetweb1", "without --no-install-recommends"),
        (" && rm -rf /var/lib/apt/lists/*", "", "lists stay"),
        ("apt-get update && apt-get install", "apt-get install", "different layers"),
        ("USER 10001:10001\n", "", "user is root"),
        ("USER 10001:10001", "USER 0:0", "user is root"),
        ("USER 10001:10001", "USER persia", "user is root"),
        ("COPY agent/healthcheck.sh", "COPY agent/health.sh", "there is no agent/health.sh to copy"),
        ("COPY run ./", "COPY build/release ./", "there is no build/release to copy"),
        ("--from=build", "--from=builder", "there is no stage builder"),
        ('CMD ["persia-metrics-agent", "--help"]', "CMD persia-metrics-agent --help", "no CMD in JSON"),
        ("HEALTHCHECK", "# HEALTHCHECK", "no HEALTHCHECK"),
        ("--no-install-recommends libcivetweb1", "--no-install-recommends g++ libcivetweb1", "the compiler is in the image"),
        ("RUN install -d", "RUN curl https://example.com/x | sh && install -d", "a script from elsewhere"),
    ],
)
def test_a_file_that_breaks_a_rule_is_caught(right, wrong, problem):
    text = FILE.read_text()
    assert right in text
    assert any(problem in found for found in problems(text.replace(right, wrong)))


@pytest.mark.parametrize("text", ["RUN true", "FROM a:1.2\nADD x y", "FROM a:1.2\nSHELL [\"x\"]", "FROM a:1.2\nRUN true \\"])
def test_what_the_reader_does_not_know_is_refused(text):
    with pytest.raises(ValueError, match="line"):
        dockerfile.parse(text)


def test_both_stages_are_the_same_debian():
    bases = {stage.base.removesuffix("-slim") for stage in dockerfile.parse(FILE.read_text())}
    assert len(bases) == 1, bases


# The image is a Debian 12, and another Debian's packages of the same libraries have other names.
@pytest.mark.needs("debian-12")
def test_packages_of_the_image_are_those_that_the_programs_are_linked_to():
    """Each library that the programs name themselves is in the image, by its package or by one that every Debian has."""
    steps = dockerfile.parse(FILE.read_text())[-1].all("RUN")
    installed = {package for step in steps for package in re.findall(r"\blib[\w.+-]+", step.text)}
    needed = set()
    for program in (AGENT.with_name("persia-metrics-agentd"), EMBEDDING_JOB):
        dynamic = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"NEEDED\s+(\S+)", dynamic)
        libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for name in names:
            path = re.search(rf"{re.escape(name)} => (\S+)", libraries)
            if path is not None:
                needed.add(owner(path[1]))
    every_debian = {"libc6", "libcrypt1", "libgcc-s1", "libstdc++6", "zlib1g"}
    assert needed - every_debian == installed


def owner(path):
    """The package of a library; dpkg knows it by the path before or after /lib became a link."""
    for candidate in (path, "/usr" + path, path.removeprefix("/usr")):
        result = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
        if result.returncode == 0:
            return result.stdout.split(":")[0]
    resolved = subprocess.run(["readlink", "-f", path], capture_output=True, text=True).stdout.strip()
    assert resolved != path, f"no package has {path}"
    return owner(resolved)


def test_health_check_is_run_as_it_stands_in_the_image():
    stage = dockerfile.parse(FILE.read_text())[-1]
    target = "/usr/local/bin/" + stage.last("HEALTHCHECK").command()[0]
    assert [shlex.split(step.text)[-1] for step in stage.all("COPY")].count(target) == 1
    assert HEALTH.stat().st_mode & 0o111 == 0o111
