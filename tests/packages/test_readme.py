"""README's first steps, typed into a plain Debian as they are written: packages, the program in Python and in C++, then a gateway.

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


# The programs run for two minutes, or for as many steps of a tenth of a second as their argument says.
STEPS = 200


def section(title, text=README):
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(text, language, start=""):
    """The code block of this language that begins with `start`."""
    blocks = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.S | re.M)
    (found,) = [(indent, body) for indent, kind, body in blocks if kind == language and body.strip().startswith(start)]
    return re.sub(rf"^{found[0]}", "", found[1], flags=re.M)


def shorter(lines):
    """Lines that run the program, with fewer steps."""
    found, times = re.subn(r"(?<!\S)(train\.py|build/quickstart)$", rf"\1 {STEPS}", lines, flags=re.M)
    assert times == 1, lines
    return found


GATEWAY = section("A gateway and Prometheus")
WITHOUT_EXEC = section("Without `exec`", (ROOT / "docs/own-metrics.md").read_text())


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
    """Types lines that run a program. Returns when README's page has shown its loss falling, and the job has ended well."""
    job = Process(system.words("bash", "-ec", f"cd {HOME}/quickstart\n{shorter(lines)}", user="newcomer"), log)
    started(job)
    page = re.search(r"<(http://127\.0\.0\.1:19091/)>", README)[1]

    def loss():
        if not job.running():
            raise RuntimeError(job.output())
        found = re.findall(r"^my_app_loss{.*} (\S+)$", fetch(page + "metrics")[1], re.M)
        return [float(value) for value in found] if fetch(page)[0] == 200 else []

    (first,) = wait_until(loss, "the loss on the agent's page")
    wait_until(lambda: max(loss()) < first, "a lower loss")
    assert job.wait(300) == 0, job.output()


def on_the_gateway(name):
    """The value on the gateway's page that README names."""
    page = re.search(r"<(http://127\.0\.0\.1:9091/)>", GATEWAY)[1]
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


def test_the_program_in_python(newcomer, started, tmp_path):
    write(newcomer, "train.py", block(section("Python"), "python"))
    lines = block(section("Python"), "")
    watch_the_page(newcomer, lines, tmp_path / "python.log", started)


def test_the_program_in_cpp(newcomer, started, tmp_path):
    write(newcomer, "main.cc", block(section("C++"), "cpp"))
    write(newcomer, "CMakeLists.txt", block(section("C++"), "cmake"))
    tools, build, run = block(section("C++"), "").strip().split("\n")
    type_(newcomer, f"{tools}\n{build}", f"{HOME}/quickstart")
    watch_the_page(newcomer, run, tmp_path / "cpp.log", started)


def test_the_values_are_on_debians_gateway(newcomer, started, tmp_path):
    gateway, run = block(GATEWAY, "").strip().split("\n")
    type_(newcomer, gateway)
    wait_until(lambda: fetch("http://127.0.0.1:9091/-/ready")[0] == 200, "the gateway")
    watch_the_page(newcomer, run, tmp_path / "gateway.log", started)
    assert on_the_gateway("my_app_batches_total") == [STEPS]
    assert on_the_gateway("my_app_step_time_cost_count") == [STEPS]


def test_agent_and_program_are_started_separately(newcomer, started, tmp_path):
    forget_the_job()
    assert on_the_gateway("my_app_batches_total") == []
    lines = shorter(block(WITHOUT_EXEC, "")) + "wait\n"
    job = Process(newcomer.words("bash", "-ec", f"cd {HOME}/quickstart\n{lines}", user="newcomer"), tmp_path / "separately.log")
    started(job)
    assert job.wait(300) == 0, job.output()
    assert on_the_gateway("my_app_batches_total") == [STEPS]


def test_all_is_removed_again(newcomer):
    newcomer.run("sh", "-c", "DEBIAN_FRONTEND=noninteractive apt-get -q -y purge prometheus-pushgateway '*persia-metrics*'")
    with pytest.raises(OSError):
        fetch("http://127.0.0.1:9091/-/ready")
