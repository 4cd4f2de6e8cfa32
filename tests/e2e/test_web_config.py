"""The agent's pages behind passwords, by web_config_file."""

import base64
import http.client
import socket
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT
from servers import wait_until
from tls import bcrypt

PATHS = ["/", "/metrics", "/-/healthy", "/-/ready", "/nothing"]


class Locked:
    """An agent whose pages require a password, and its file."""

    def __init__(self, job, path, *flags, **users):
        self.path = path
        self.write(**users)
        self.agent = job.agent(f"--web.config.file={path}", *flags)
        wait_until(lambda: self.agent.running() and self.connects(), "the agent's pages")

    def write(self, **users):
        lines = [f"  {user}: {hashed}\n" for user, hashed in users.items()]
        self.put("basic_auth_users:\n" + "".join(lines))

    def put(self, text):
        draft = self.path.with_suffix(".draft")
        draft.write_text(text)
        draft.rename(self.path)

    def connects(self):
        try:
            return self.get("/-/ready")[0] != 0
        except OSError:
            return False

    def get(self, path, user=None, password="", method="GET"):
        """Status and headers."""
        host, port = self.agent.address.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        headers = {}
        if user is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, dict(answer.getheaders())
        finally:
            connection.close()

    def status(self, *arguments, **more):
        return self.get(*arguments, **more)[0]

    def count(self, text):
        return self.agent.output().count(text)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "web.yaml"


def test_every_page_asks_who_it_is(job, path):
    locked = Locked(job, path, "--web.enable-lifecycle=true", alice=bcrypt("secret"))
    wait_until(lambda: locked.status("/-/ready", "alice", "secret") == 200, "the first collection")
    for page in PATHS:
        status, headers = locked.get(page)
        assert status == 401
        assert headers["WWW-Authenticate"].startswith('Basic realm="persia-metrics-agent"')
        assert locked.status(page, "alice", "wrong") == 401
        assert locked.status(page, "bob", "secret") == 401
        assert locked.status(page, "alice", "secret") == (404 if page == "/nothing" else 200)
    assert locked.status("/-/reload", method="POST") == 401
    assert locked.status("/-/reload", "alice", "secret", method="POST") == 200


def test_a_scrape_does_not_cost_a_bcrypt(job, path):
    locked = Locked(job, path, alice=bcrypt("secret", "$2y$12$" + "abcdefghijklmnopqrstuu"))

    def spent():
        """The agent's processor time, in ticks."""
        return sum(map(int, Path(f"/proc/{locked.agent.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    before = spent()
    assert locked.status("/-/healthy", "alice", "secret") == 200
    first = spent() - before
    before = spent()
    for _ in range(10):
        assert locked.status("/-/healthy", "alice", "secret") == 200
    assert spent() - before < 5 * first


def test_a_new_file_counts_at_once_and_a_broken_one_changes_nothing(job, path):
    locked = Locked(job, path, alice=bcrypt("secret"))
    assert locked.status("/-/healthy", "alice", "secret") == 200
    locked.write(bob=bcrypt("other"))
    assert locked.status("/-/healthy", "alice", "secret") == 401
    assert locked.status("/-/healthy", "bob", "other") == 200
    broken = {
        "web.yaml:2:8: basic_auth_users: the value of": f"basic_auth_users:\n  bob: {bcrypt('third')[:-1]}\n",
        "is empty": "",
        "names no users any more": "# nobody\n",
    }
    for complaint, text in broken.items():
        locked.put(text)
        for _ in range(3):
            assert locked.status("/-/healthy", "bob", "other") == 200
            assert locked.status("/-/healthy") == 401
        assert locked.count(complaint) == 1, locked.agent.output()
    path.unlink()
    assert locked.status("/-/healthy") == 401
    locked.write(carol=bcrypt("fourth"))
    assert locked.status("/-/healthy", "carol", "fourth") == 200
    for secret in ["$2y$", "secret", "fourth"]:
        assert locked.agent.output().replace("($2y$, $2a$ or $2b$", "").replace("$2y$, $2a$ or $2b$,", "").count(secret) == 0


def test_a_broken_file_at_the_start(job, path):
    path.write_text("basic_auth_users:\n  alice: secret\nbasic_auth: {}\n")
    places = [f"{path}:2:10: basic_auth_users: the value of", f"{path}:3:1: unknown key"]
    flag = f"--web.config.file={path}"
    strict = job.agent(flag, "--strict")
    assert strict.wait() == 2 and places[0] in strict.output()
    agent = job.agent(flag)
    wait_until(lambda: " starts run " in agent.output(), "the agent to start")
    assert agent.running() and "pages on http" not in agent.output()
    assert all(place in agent.output() for place in places)
    with pytest.raises(OSError):
        socket.create_connection(tuple(agent.address.split(":")), timeout=5)
    agent.stop()
    check = subprocess.run([AGENT, "check-config", flag], capture_output=True, text=True, timeout=30)
    assert check.returncode == 2 and all(place in check.stderr for place in places)
    once = subprocess.run([AGENT, "once", flag, f"--metrics-dir={job.segments}"], capture_output=True, text=True, timeout=30)
    assert once.returncode == 0, "it serves no pages"
    checked = job.exec("true", flags=[flag, "--strict"])
    assert checked.wait() == 125
    assert places[0] in checked.output()
    ran = job.exec("sh", "-c", "echo the command ran", flags=[flag])
    assert ran.wait() == 0
    assert "the command ran" in ran.output() and "the pages are not served" in ran.output()
    assert "pages on http" not in ran.output()
