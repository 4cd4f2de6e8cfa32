"""The image's health check: what an orchestrator may restart for, and what not."""

import subprocess

import needs
import pytest
from conftest import AGENT, ROOT, environment

CHECK = ROOT / "agent/healthcheck.sh"


def health(tmp_path, *command):
    """In a container's namespaces: starts the command if there is one, waits until it has printed `ready` or for its agent, and asks."""
    script = f"""
        cd {tmp_path}
        if [ $# -gt 0 ]; then "$@" > log 2>&1 & until grep -q -e ready -e 'job ' -e disabled log; do sleep 0.05; done; fi
        {CHECK}; echo "health $?"; [ $# = 0 ] || kill $!"""
    done = subprocess.run(
        needs.in_namespaces("bash", "-c", script, "bash", *(str(word) for word in command)),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip(), done.stderr


TROUBLES = {
    "pages": "--listen=127.0.0.1:19091",
    "no-pages": "--listen=off",
    "cannot-bind": "--listen=192.0.2.1:19091",  # no address of this machine
    "metrics-off": "--enable-metrics=false",
    "wrong-setting": "--log-level=nonsense",
}


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("verb", ["exec", "run"])
@pytest.mark.parametrize("flag", TROUBLES.values(), ids=TROUBLES.keys())
def test_trouble_of_the_metrics_is_no_trouble_of_the_container(tmp_path, segments, verb, flag):
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--push-timeout=0.5", flag]
    command = ["--", "sh", "-c", "echo ready; exec sleep 100"] if verb == "exec" else []
    answer, errors = health(tmp_path, AGENT, verb, *flags, *command)
    assert answer == "health 0", errors


@pytest.mark.needs("namespaces")
def test_without_its_process_the_container_is_not_healthy(tmp_path):
    answer, errors = health(tmp_path)
    assert answer == "health 1"
    assert "persia-metrics-agent exec or run is not running" in errors
    answer, _ = health(tmp_path, "sh", "-c", "echo ready; exec sleep 100")
    assert answer == "health 1"
