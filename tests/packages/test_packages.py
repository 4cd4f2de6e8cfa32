"""Installs the packages of `./run package` in a plain Debian with systemd, and runs jobs with them.

The tests run in the order of this file: installation, use, an upgrade during jobs, removal, purge.
"""

import os
import re
import shutil
import subprocess

import pytest
from conftest import NAMES, environment
from servers import Process, free_port, wait_until
from tls import Authority

pytestmark = pytest.mark.needs("namespaces")

TOOLS = ("g++", "cmake", "ninja-build", "pkg-config", "python3", "procps", "man-db")
UNIT = "persia-metrics-agent@trainer"


def versions(system):
    return set(system.out("dpkg-query", "--show", "--showformat=${Version}\n", *NAMES).split())


def files_of(system):
    """All files of the packages, and none of their directories that others use."""
    listed = {line for name in NAMES for line in system.out("dpkg", "--listfiles", name).split("\n")}
    return {path for path in listed if not system.path(path).is_dir()}


def settings(gateway, **more):
    """A file of settings for the job `by_unit`."""
    own = {"job_name": "by_unit", "gateway_address": gateway.address, "listen_address": f"127.0.0.1:{free_port()}"}
    lines = {**own, "push_interval_seconds": 0.2, **more}
    return "PersiaMetricsConfig:\n" + "".join(f"  {name}: {value}\n" for name, value in lines.items())


def main_pid(system):
    return int(system.out("systemctl", "show", "--property=MainPID", "--value", UNIT))


class Worker(Process):
    """A program of programs/, which counts until its input ends."""

    def __init__(self, system, log, *command, user="trainer", env=()):
        super().__init__(system.words(*command, user=user, env=env), log, stdin=subprocess.PIPE, env=environment())

    def end(self):
        """Ends it. Returns its count."""
        self.popen.stdin.close()
        assert self.wait() == 0, self.output()
        (count,) = re.findall(r"^\d+$", self.output(), re.M)
        return int(count)


def test_packages_install_from_a_plain_debian(system):
    system.apt("install", *TOOLS, *(f"/packages/old/{file.name}" for file in system.path("/packages/old").iterdir()))
    (version,) = versions(system)
    assert version.endswith("~older")
    assert system.out("persia-metrics-agent", "--version") == "persia-metrics-agent 0.1.0"
    assert system.run("persia-metrics-agent", "once", "--job=none", "--listen=off").returncode == 0


def test_pages_reference_and_completion_are_where_they_are_searched(system):
    pages = ["persia-metrics-agent", *(f"persia-metrics-agent-{name}" for name in ("run", "exec", "once", "check-config", "explain"))]
    assert system.out("man", "--where", *pages).split() == [f"/usr/share/man/man1/{page}.1.gz" for page in pages]
    assert "--gateway-ca-file" in system.out("man", "persia-metrics-agent-exec")
    assert system.path("/usr/share/man/man1/persia-metrics-agentd.1.gz").is_symlink()
    for package, symbol in (("libpersia-metrics-dev", "instruments.h"), ("python3-persia-metrics", "class Counter")):
        assert symbol in system.path(f"/usr/share/doc/{package}/html/index.html").read_text()
    script = "/usr/share/bash-completion/completions/persia-metrics-agent"
    assert "_persia_metrics_agent" in system.out("bash", "-c", f"source {script} && complete -p persia-metrics-agent")


def test_unit_is_correct_and_hardened(system):
    (unit,) = [path for path in files_of(system) if path.endswith(".service")]
    assert system.out("systemd-analyze", "verify", unit.replace("@", "@root")) == ""
    # A unit without any protection is rated 96 of 100.
    system.run("systemd-analyze", "security", "--offline=yes", "--threshold=25", unit)


def test_programs_build_with_cmake_and_with_pkg_config(system):
    system.run("cp", "-R", "/packages/programs", "/srv/programs")
    system.run("cmake", "-G", "Ninja", "-S", "/srv/programs", "-B", "/srv/cmake", "-DCMAKE_BUILD_TYPE=Release")
    system.run("cmake", "--build", "/srv/cmake")
    compile_ = "c++ -std=c++20 -O2 -o /srv/job /srv/programs/job.cc $(pkg-config --cflags --libs persia_metrics)"
    system.run("sh", "-c", compile_)
    assert "libpersia_metrics" not in system.out("ldd", "/srv/cmake/job")
    assert "libpersia_metrics.so.0.1 => /" in system.out("ldd", "/srv/job")
    assert system.out("pkg-config", "--modversion", "persia_metrics") == "0.1.0"


def test_python_package_is_known_to_pythons_metadata(system):
    program = "import importlib.metadata as m, persia_metrics as p; print(m.version('persia-metrics'), p.__version__)"
    assert system.out("python3", "-c", program) == "0.1.0 0.1.0"


def test_the_agent_serves_tls(system, tmp_path):
    Authority(tmp_path).issue("agent", "IP:127.0.0.1")
    folder = system.path("/srv/tls")
    folder.mkdir()
    for name in ("agent.pem", "agent.key"):
        shutil.copy(tmp_path / name, folder)
    (folder / "web.yml").write_text("tls_server_config: {cert_file: agent.pem, key_file: agent.key}\n")
    system.run("persia-metrics-agent", "check-config", "--web.config.file=/srv/tls/web.yml")


def test_unit_without_settings_does_not_start(system):
    assert system.run("systemctl", "start", "persia-metrics-agent@nobody", code=None).returncode != 0
    assert system.out("systemctl", "show", "--property=AssertResult", "--value", "persia-metrics-agent@nobody") == "no"


def test_an_upgrade_during_jobs_loses_no_count(system, gateway, started, tmp_path):
    system.run("useradd", "--system", "trainer")
    file = system.path("/etc/persia-metrics/trainer.yaml")
    file.write_text(settings(gateway))
    system.run("systemctl", "enable", "--now", UNIT)
    commands = {"cmake": ["/srv/cmake/job"], "pkg-config": ["/srv/job"], "python": ["python3", "/srv/programs/job.py"]}
    workers = {}
    for replica, (name, command) in enumerate(commands.items()):
        env = ("PERSIA_JOB_NAME=by_unit", f"REPLICA_INDEX={replica}", f"PERSIA_ROLE={name}")
        workers[name] = Worker(system, tmp_path / f"{name}.log", *command, env=env)
    flags = [f"--gateway={gateway.address}", f"--listen=127.0.0.1:{free_port()}", "--push-interval=0.2"]
    under_exec = ["persia-metrics-agent", "exec", "--job=by_exec", *flags, "--", "/srv/job"]
    workers["exec"] = Worker(system, tmp_path / "exec.log", *under_exec, env=("PERSIA_ROLE=exec",))
    for worker in workers.values():
        started(worker)

    def value(name, role):
        return gateway.metrics().one(name, role=role)

    def wait_for_growth(why):
        before = {role: value("packages_steps_total", role) or 0 for role in workers}
        for role, worker in workers.items():
            wait_until(lambda role=role: (value("packages_steps_total", role) or 0) > before[role], f"the counts of {role} {why}")
            assert worker.running(), worker.output()

    wait_for_growth("after the start")
    # The hardened agent sees the processes of its user.
    assert value("persia_process_open_fds", "cmake") > 0
    before = main_pid(system)

    system.apt("install", *(f"/packages/new/{file.name}" for file in system.path("/packages/new").iterdir()))
    assert not any(version.endswith("~older") for version in versions(system))
    assert main_pid(system) not in (0, before)
    wait_for_growth("after the upgrade")

    # An agent that is killed afterwards is started again: by systemd, and by the supervisor, whose own file is replaced.
    system.run("pkill", "--signal=KILL", "--full", "persia-metrics-agent (run|exec-collect) ")
    wait_for_growth("after a kill of the agents")

    file.write_text(settings(gateway, labels="{team: red}"))
    system.run("systemctl", "reload", UNIT)
    wait_until(lambda: gateway.metrics().one("packages_steps_total", role="cmake", team="red"), "the label of the new settings")

    for role, worker in workers.items():
        gateway.wait_for("packages_steps_total", worker.end(), role=role)


def test_processes_of_another_user_share_a_directory_with_the_agent(system, gateway, started, tmp_path):
    """As README.Debian has it."""
    system.run("groupadd", "sharers")
    system.run("useradd", "--system", "--groups", "sharers", "other")
    drop_in = system.path("/etc/systemd/system/persia-metrics-agent@shared.service.d")
    drop_in.mkdir()
    (drop_in / "user.conf").write_text("[Service]\nUser=trainer\nSupplementaryGroups=sharers\n")
    text = settings(gateway, metrics_dir="/dev/shm/shared", metrics_dir_group="sharers")
    system.path("/etc/persia-metrics/shared.yaml").write_text(text)
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "start", "persia-metrics-agent@shared")
    wait_until(lambda: system.path("/dev/shm/shared").is_dir(), "the directory of the agent")
    group = system.out("getent", "group", "sharers").split(":")[2]
    env = ("PERSIA_METRICS_DIR=/dev/shm/shared", f"PERSIA_METRICS_DIR_GROUP={group}", "PERSIA_ROLE=shared")
    worker = Worker(system, tmp_path / "shared.log", "/srv/job", user="other", env=env)
    started(worker)
    wait_until(lambda: gateway.metrics().one("packages_steps_total", role="shared"), "the counts of the other user")
    gateway.wait_for("packages_steps_total", worker.end(), role="shared")


def test_removal_stops_the_agents_and_purge_leaves_nothing(system):
    files = files_of(system)
    assert "/usr/bin/persia-metrics-agent" in files
    system.apt("remove", *NAMES)
    assert system.run("pgrep", "--full", "/usr/bin/persia-metrics-agent", code=1)
    assert [path for path in files if os.path.lexists(system.path(path))] == []
    assert system.path("/etc/persia-metrics/trainer.yaml").exists()
    assert list(system.path("/var/lib/persia-metrics/trainer").glob("*.state"))
    system.apt("purge", "persia-metrics-agent")  # nothing is left of the others, so that apt does not know them any more
    left = system.out("find", "/", "-xdev", "-ipath", "*persia*metrics*").split("\n")
    others = ("/packages/", "/var/cache/", "/var/log/")  # of this test, of man-db, and of apt
    assert [path for path in left if path and not path.startswith(others)] == []
