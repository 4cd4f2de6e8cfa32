"""Power cuts at each operation of recorded agents. Each must leave a state from which the agent recovers."""

import os
import subprocess

import pytest
from jobs import AGENT, BUILD, Job, damaged_state, environment, flags, several_agents
from servers import Process, fetch, free_port, wait_until
from test_seed import seed
from weakened import WEAKENED

pytestmark = pytest.mark.needs("ptrace")

ALL = os.environ.get("PERSIA_TEST_CRASH") == "all"
# At most so many states at each operation.
STATES = 25 if ALL else 8

JOBS = {
    # The metrics directory is on a disk, with the state in it.
    "beside": (several_agents, {}, []),
    # The same, and the state is on another disk.
    "elsewhere": (several_agents, {"state_elsewhere": True}, ["--state-elsewhere"]),
    # The metrics directory is in memory.
    "memory": (several_agents, {"state_elsewhere": True, "segments_lost": True}, ["--state-elsewhere", "--segments-lost"]),
    # The state was damaged before an agent read it.
    "damaged": (damaged_state, {}, []),
}


class Recorded:
    def __init__(self, name, directory):
        play, how, self.options = JOBS[name]
        self.directory = directory
        self.path = directory / "recording"
        with Job(directory, **how) as job:
            play(job)
            self.recorder = job.recorder
        self.recorder.write(self.path)

    def check(self, *more, recording=None):
        """Runs crash_states; returns its exit status and its output."""
        command = [BUILD / "tests/crash/crash_states", recording or self.path, "--seed", str(seed()), *self.options, *more]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900, check=False)
        return done.returncode, f"{' '.join(map(str, command))}\n{done.stdout}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    made = {}

    def make(name):
        if name not in made:
            made[name] = Recorded(name, tmp_path_factory.mktemp(name))
        return made[name]

    return make


@pytest.mark.parametrize("name", JOBS)
def test_agents_recover_from_each_cut(recorded, name):
    status, output = recorded(name).check("--states", str(STATES))
    print(output)
    assert status == 0, output


@pytest.mark.parametrize("missing", WEAKENED)
def test_a_missing_step_is_found(recorded, missing):
    """The recording, as if the agent lacked a step that makes it safe."""
    job = recorded(WEAKENED[missing].job)
    path = job.directory / missing.replace(" ", "-")
    job.recorder.write(path, WEAKENED[missing].change(job.recorder.operations))
    status, output = job.check("--states", "3", recording=path)
    print(output)
    assert status == 1, f"not found: {output}"


def test_real_agents_start_on_what_cuts_leave(recorded, tmp_path):
    """crash_states starts parts of the agent. The whole agent must show the same counts."""
    job = recorded("beside")
    status, output = job.check("--states", "1", "--keep", tmp_path / "kept", "--every", str(10 if ALL else 120))
    assert status == 0, output
    lines = (tmp_path / "kept/index").read_text().splitlines()
    assert len(lines) > 3
    for line in lines:
        number, segments, _, run_may_be_over = line.split()
        root = tmp_path / "kept" / number
        address = f"127.0.0.1:{free_port()}"
        # The recording may be older than the time for which instances without a process are shown.
        shown_longer = "--gauge-ttl=24h"
        command = [AGENT, "run", *flags(root, False), shown_longer, f"--listen={address}", "--gateway=127.0.0.1:9"]
        agent = Process(command, tmp_path / f"agent-{number}.log", env=environment())
        expected = {sum(4**n for n in range(int(segments)))} | ({0} if run_may_be_over == "1" else set())

        def shown():
            lines = fetch(f"http://{address}/metrics")[1].splitlines()
            return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("crash_counts{"))

        with agent:
            wait_until(lambda: fetch(f"http://{address}/metrics")[0] == 200, f"the agent on state {number}", interval=0.02)
            assert shown() in expected, f"state {number}: {line}\n{agent.output()}"
            agent.kill()
        assert "broken" not in agent.output(), agent.output()
