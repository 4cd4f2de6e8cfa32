"""README's first steps, typed into a plain Debian as they are written: packages, gateway, the program in C++ and in Python.

Port 9091 is the gateway's and 19091 the agent's, as in README.
"""

import re
import socket

import pytest
from conftest import ROOT
from servers import Process, fetch, wait_until

pytestmark = pytest.mark.needs("namespaces")

README = (ROOT / "README.md").read_text()
HOME = "/home/newcomer"


def section(title):
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(text, language, start=""):
    """The code block of this language that begins with `start`."""
    blocks = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.S | re.M)
    (found,) = [(indent, body) for indent, kind, body in blocks if kind == language and body.strip().startswith(start)]
    return re.sub(rf"^{found[0]}", "", found[1], flags=re.M)


FIVE_MINUTES = section("Five minutes")


@pytest.fixture(scope="module")
def newcomer(system):
    """A user with sudo, and a folder with the packages as `./run package` leaves them."""
    for port in (9091, 19091):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))  # an error says that something else runs there
    system.apt("install", "sudo")
    system.run("useradd", "--create-home", "newcomer")
    system.path("/etc/sudoers.d/newcomer").write_text("newcomer ALL=(ALL) NOPASSWD: ALL\n")
    system.run("install", "-d", "-o", "newcomer", f"{HOME}/build/package", f"{HOME}/quickstart")
    system.run("sh", "-c", f"cp /packages/new/*.deb {HOME}/build/package")
    return system


def type_(system, lines, folder=HOME, **options):
    """Types lines as the newcomer. Questions of apt get its default answer."""
    script = f"cd {folder}\n" + re.sub(r"\bapt install\b", "apt install -y", lines)
    return system.run("bash", "-ec", script, user="newcomer", **options)


def write(system, name, text):
    system.path(f"{HOME}/quickstart/{name}").write_text(text)


def watch_the_page(system, lines, log, started):
    """Types lines that run the quick start. Returns whether README's page was served meanwhile."""
    job = Process(system.words("bash", "-ec", f"cd {HOME}/quickstart\n{lines}", user="newcomer"), log)
    started(job)
    page = re.search(r"<(http://127\.0\.0\.1:19091/)>", FIVE_MINUTES)[1]

    def served():
        if not job.running():
            raise RuntimeError(job.output())
        return "my_app_batches_total" in fetch(page + "metrics")[1] and fetch(page)[0] == 200

    wait_until(served, "the agent's page")
    assert job.wait(300) == 0, job.output()


def on_the_gateway(name):
    """The value on the gateway's page that README names."""
    page = re.search(r"<(http://127\.0\.0\.1:9091/)>", FIVE_MINUTES)[1]
    found = re.findall(rf'^{name}{{[^}}]*job="quickstart"[^}}]*}} (\S+)$', fetch(page + "metrics")[1], re.M)
    return [float(value) for value in found]


def forget_the_job():
    for group in re.findall(r'^push_time_seconds{(.*?job="quickstart".*?)}', fetch("http://127.0.0.1:9091/metrics")[1], re.M):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', group))
        path = "".join(f"/{name}/{value}" for name, value in labels.items() if name != "job" and value)
        fetch(f"http://127.0.0.1:9091/metrics/job/quickstart{path}", method="DELETE")


def test_packages_are_installed(newcomer):
    lines = block(section("Install"), "", "./run package")
    type_(newcomer, lines.replace("./run package && ", ""))
    assert newcomer.out("persia-metrics-agent", "--version", user="newcomer").startswith("persia-metrics-agent ")


def test_gateway_is_debians(newcomer):
    (line,) = re.findall(r"`(sudo apt install prometheus-pushgateway)`", FIVE_MINUTES)
    type_(newcomer, line)
    wait_until(lambda: fetch("http://127.0.0.1:9091/-/ready")[0] == 200, "the gateway")


def test_the_program_in_cpp(newcomer, started, tmp_path):
    write(newcomer, "main.cc", block(FIVE_MINUTES, "cpp"))
    write(newcomer, "CMakeLists.txt", block(FIVE_MINUTES, "cmake"))
    tools, build, run = block(FIVE_MINUTES, "", "sudo apt install").strip().split("\n")
    type_(newcomer, f"{tools}\n{build}", f"{HOME}/quickstart")
    watch_the_page(newcomer, run, tmp_path / "cpp.log", started)
    assert on_the_gateway("my_app_batches_total") == [2000]
    assert on_the_gateway("my_app_step_time_cost_count") == [2000]


def test_the_program_in_python(newcomer, started, tmp_path):
    forget_the_job()
    assert on_the_gateway("my_app_batches_total") == []
    write(newcomer, "train.py", block(FIVE_MINUTES, "python"))
    watch_the_page(newcomer, block(FIVE_MINUTES, "", "persia-metrics-agent exec"), tmp_path / "python.log", started)
    assert on_the_gateway("my_app_batches_total") == [2000]


def test_agent_and_program_are_started_separately(newcomer, started, tmp_path):
    forget_the_job()
    lines = block(FIVE_MINUTES, "", "persia-metrics-agent run") + "wait\n"
    job = Process(newcomer.words("bash", "-ec", f"cd {HOME}/quickstart\n{lines}", user="newcomer"), tmp_path / "separately.log")
    started(job)
    assert job.wait(300) == 0, job.output()
    assert on_the_gateway("my_app_batches_total") == [2000]


def test_all_is_removed_again(newcomer):
    newcomer.run("sh", "-c", "DEBIAN_FRONTEND=noninteractive apt-get -q -y purge prometheus-pushgateway '*persia-metrics*'")
    with pytest.raises(OSError):
        fetch("http://127.0.0.1:9091/-/ready")
