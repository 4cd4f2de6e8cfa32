"""Where the time of ranks goes, over kills of them and of the agent, and what is written of it at the end."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import AGENT, PYTHON, PYTHON_PACKAGE
from servers import wait_until

# Trains 30 steps, with a checkpoint after steps 5, 15 and 25, and goes on from the last one.
TRAINS = """
import os, sys, time
from persia_metrics import phase, set_step

checkpoint, kill_at = sys.argv[1], int(sys.argv[2])
start = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
with phase("init"):
    time.sleep(0.2)
for step in range(start, 30):
    set_step(step)
    with phase("data"):
        time.sleep(0.01)
    with phase("forward"):
        time.sleep(0.05)
    if step == kill_at:
        os.kill(os.getpid(), 9)
    if step % 10 == 5:
        with phase("checkpoint"):
            open(checkpoint, "w").write(str(step + 1))
"""
# Goes on from a step, in phase sync until it is told to end.
WAITS = """
from persia_metrics import phase, set_step
set_step({first})
with phase("sync"):
    set_step({last})
    print("waits")
    input()
"""


def buckets(shown, **labels):
    """The rank's time, by bucket."""
    series = ((dict(have), value) for (name, have), value in shown.items() if name == "persia_rank_seconds_total")
    return {have["bucket"]: value for have, value in series if labels.items() <= have.items()}


def report(directory, *arguments, memory=1 << 30):
    """`memory`: the bytes of address space that the command may have."""
    command = ["prlimit", f"--as={memory}", AGENT, "report", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def exec_twice(job, tmp_path, name, *kills):
    """A command that trains, is killed at each of these steps, trains on, and ends: its log, and its summary."""
    (tmp_path / "train.py").write_text(TRAINS)
    train = f"{PYTHON} {tmp_path}/train.py {tmp_path}/{name}.checkpoint"
    script = "; ".join(f"{train} {step}" for step in (*kills, -1))
    env = {"PYTHONPATH": str(PYTHON_PACKAGE), "PERSIA_ROLE": "trainer"}
    agent = job.exec("sh", "-c", script, flags=[f"--report={tmp_path}/{name}"], env=env)
    assert agent.wait(60) == 0, agent.output()
    return agent.output(), tmp_path / name


def test_exec_tells_at_the_end_what_the_run_was_worth(job, gateway, tmp_path):
    log, path = exec_twice(job, tmp_path, "a.json", 22)
    summary = json.loads(path.read_text())
    assert (summary["format"], summary["version"], summary["job"], summary["exit_code"]) == ("persia-metrics-run", 1, job.name, 0)
    assert (summary["restarts"], summary["redone_steps"]) == (1, 7)  # from step 16 on
    [rank] = summary["ranks"]
    assert (rank["role"], rank["replica"], rank["highest_step"]) == ("trainer", 0, 29)
    times = rank["bucket_seconds"]
    # All steps but those that were redone. The collection in which a process passes its former highest step is divided by steps.
    assert times["compute"] + times["data"] >= 29 * 0.06 and times["compute"] > times["data"] > 0 and times["starting"] >= 2 * 0.2
    assert times["redone"] > 0 and times["hung"] == times["unmarked"] == 0
    assert sum(times.values()) == pytest.approx(summary["rank_seconds"]) and summary["rank_seconds"] <= summary["seconds"] + 0.02
    assert summary["rank_seconds"] > 0.5 * summary["seconds"], "without what the shell took"
    assert summary["goodput_ratio"] == pytest.approx(times["compute"] / summary["rank_seconds"])
    repair = times["down"] + times["redone"] + times["starting"]
    assert 0 < summary["mean_time_to_repair_seconds"] < repair
    # The gateway has the same.
    shown = gateway.metrics()
    assert buckets(shown, role="trainer") == pytest.approx(times)
    assert shown.one("persia_rank_redone_steps_total", role="trainer") == 7
    assert shown.one("persia_goodput_ratio") == pytest.approx(summary["goodput_ratio"])
    assert f"goodput {100 * summary['goodput_ratio']:.1f} %, 1 rank, 1 restart, 7 steps redone, mean time to repair" in log
    assert f"the summary is in {path}" in log

    _, other = exec_twice(job, tmp_path, "b.json")
    assert json.loads(other.read_text())["restarts"] == 0, "a new run begins at 0"
    code, table, _ = report(tmp_path, path.name)
    assert code == 0 and "trainer rep_0" in table and "redone steps" in table
    (tmp_path / "large.json").write_text(path.read_text() + " " * 2**21)
    assert report(tmp_path, "large.json")[1].splitlines()[1:] == table.splitlines()[1:]
    code, table, _ = report(tmp_path, "--compare", path.name, other.name)
    lines = {line[: line.index("  ")].strip(): line.split() for line in table.splitlines() if line.strip() and not line.startswith(" ")}
    assert code == 0 and lines["restarts"][1:] == ["1", "0", "-1"] and lines["redone steps"][2:] == ["7", "0", "-7"]


# Numbers its steps only when it goes on from a checkpoint, if `numbers`, and else counts them.
COUNTS = """
import os, sys, time
from persia_metrics import count_steps, phase, set_step

checkpoint, numbers = sys.argv[1], sys.argv[2] == "numbers"
resumes = os.path.exists(checkpoint)
if resumes and numbers:
    set_step(20)
for step in range(20 if resumes else 0, 50):
    with phase("forward"):
        time.sleep(0.02)
    count_steps()
    if step == 20:
        open(checkpoint, "w").close()
    if step == 40 and not resumes:
        os._exit(1)
"""


@pytest.mark.parametrize(("numbers", "redone"), [("numbers", 21), ("none", None)])
def test_steps_that_are_counted_are_redone_if_the_next_process_gives_a_number(job, gateway, tmp_path, numbers, redone):
    (tmp_path / "train.py").write_text(COUNTS)
    train = f"{PYTHON} {tmp_path}/train.py {tmp_path}/checkpoint {numbers}"
    agent = job.exec("sh", "-c", f"{train} || {train}", flags=[f"--report={tmp_path}/a.json"], env={"PYTHONPATH": str(PYTHON_PACKAGE)})
    assert agent.wait(60) == 0, agent.output()
    summary = json.loads((tmp_path / "a.json").read_text())
    assert (summary["restarts"], summary["redone_steps"]) == (1, redone)
    shown = gateway.metrics()
    assert shown.one("persia_rank_redone_steps_total") == redone
    told = "redone steps unknown" if redone is None else f"{redone} steps redone"
    assert f"1 rank, 1 restart, {told}, mean time" in agent.output()
    redone_seconds = summary["bucket_seconds"]["redone"]
    assert (redone_seconds == 0) if redone is None else (redone_seconds > 15 * 0.02)


def test_bad_files_are_named_with_the_reason(tmp_path):
    (tmp_path / "page.html").write_text("<html>")
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(257 * 2**20)
    reasons = {
        "huge.json": "is larger than 256 MiB; expected the JSON",
        "page.html": 'is no JSON; it begins with "<html>"',
    }
    for name, reason in reasons.items():
        code, table, error = report(tmp_path, name, memory=128 << 20)  # a file that is too large is not read
        assert (code, table) == (1, "") and error.startswith(f'persia-metrics-agent: "{name}" {reason}'), error


def test_no_time_is_lost_while_no_agent_runs(job):
    agent = job.agent()
    first = job.python(WAITS.format(first=0, last=9))
    first.wait_for("waits")
    wait_until(lambda: buckets(agent.metrics()).get("sync", 0) > 0.5, "half a second in sync")
    agent.kill()
    killed = time.monotonic()
    while time.monotonic() < killed + 1:
        time.sleep(0.1)
    first.kill()
    second = job.python(WAITS.format(first=4, last=12))
    second.wait_for("waits")
    agent = job.agent()
    wait_until(lambda: buckets(agent.metrics()).get("sync", 0) > 1.2, "more time in sync")
    shown = agent.metrics()
    assert shown.one("persia_rank_redone_steps_total") == 6  # from 4 to 9
    assert shown.one("persia_rank_restarts_total") == 1
    # The first process is known to have lived until the last collection before the kill.
    assert 0.9 < buckets(shown)["down"] < 30
    assert sum(buckets(shown).values()) > 2
    second.succeed()


def test_a_program_that_sleeps_outside_of_its_phases_has_no_goodput_for_it(job, browse, tmp_path):
    source = """
import time
from persia_metrics import phase, set_step
for step in range(12):
    set_step(step)
    with phase("forward"):
        time.sleep(0.01)
    time.sleep(0.1)
"""
    env = {"PYTHONPATH": str(PYTHON_PACKAGE), "PERSIA_ROLE": "trainer"}
    agent = job.exec(PYTHON, "-c", source, flags=[f"--report={tmp_path}/run.json"], env=env)
    assert agent.wait(60) == 0, agent.output()
    summary = json.loads((tmp_path / "run.json").read_text())
    times = summary["bucket_seconds"]
    assert times["other"] > 12 * 0.1 > times["compute"] > 12 * 0.01
    assert summary["goodput_ratio"] == pytest.approx(times["compute"] / summary["rank_seconds"]) and summary["goodput_ratio"] < 0.5
    assert re.search(r"time of all ranks [\d.]+ s: other [\d.]+ s", agent.output()), agent.output()


def test_all_the_time_of_a_process_that_no_agent_saw_alive_counts(job):
    source = """
import os, time
from persia_metrics import phase
began = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
time.sleep(0.5)
with phase("forward"):
    time.sleep(0.2)
time.sleep(0.8)
print(f"lived {time.clock_gettime(time.CLOCK_BOOTTIME) - began}.")
"""
    begun = time.monotonic()
    worker = job.python(source)
    worker.succeed()
    most = time.monotonic() - begun
    least = float(re.search(r"lived ([\d.]+)\.", worker.output())[1])
    agent = job.agent()
    wait_until(lambda: buckets(agent.metrics()), "the rank")
    times = buckets(agent.metrics())
    # The kernel tells the start to a hundredth of a second.
    assert least - 0.02 < sum(times.values()) < most + 0.02, times
    assert times["starting"] > 0.5 and times["compute"] > 0.2 and times["other"] > 0.8
    assert times["compute"] + times["other"] < most - 0.5


def test_a_rank_that_finished_is_not_down_although_its_child_goes_on(job, tmp_path):
    agent = job.agent()
    source = """
import os, time
from persia_metrics import Counter, phase
steps = Counter("app", "steps_total", "Steps.")
steps.inc()
with phase("forward"):
    time.sleep(0.3)
    if os.fork() == 0:
        steps.inc()
        print("child", flush=True)
        while not os.path.exists(os.environ["CHILD_ENDS"]):
            time.sleep(0.05)
        os._exit(0)
    print("waits", flush=True)
    input()
"""
    worker = job.python(source, CHILD_ENDS=str(tmp_path / "ends"))
    worker.wait_for("waits")
    worker.wait_for("child")
    wait_until(lambda: agent.metrics().one("persia_process_up", process="1") == 1, "the child")
    worker.succeed()
    agent.await_collections(4)
    (tmp_path / "ends").touch()
    wait_until(lambda: agent.metrics().one("persia_process_up", process="1") == 0, "the child's end")
    before = buckets(agent.metrics())
    assert before["down"] == 0 and before["compute"] >= 0.3
    agent.await_collections(4)
    assert buckets(agent.metrics()) == before


def test_a_stopped_rank_is_hung_once_it_is_judged(job):
    agent = job.agent("--hang-after=1s")
    source = """
import time
from persia_metrics import Counter, phase, set_step
counter = Counter("app", "steps_total", "Steps.")
step = 0
while True:
    set_step(step)
    step += 1
    with phase("forward"):
        counter.inc()
        time.sleep(0.05)
"""
    ranks = [job.python(source, REPLICA_INDEX=str(replica)) for replica in range(2)]
    wait_until(lambda: all(buckets(agent.metrics(), instance=f"rep_{n}").get("compute", 0) > 1 for n in range(2)), "both ranks to train")
    os.kill(ranks[1].pid, signal.SIGSTOP)
    wait_until(lambda: buckets(agent.metrics(), instance="rep_1")["hung"] > 1, "a second in hung")
    assert buckets(agent.metrics(), instance="rep_0")["hung"] == 0
    os.kill(ranks[1].pid, signal.SIGCONT)


def test_two_processes_of_one_identity_that_train_at_once_are_named_once(job):
    agent = job.agent()
    source = """
import time
from persia_metrics import count_steps
while True:
    count_steps()
    time.sleep(0.01)
"""
    ranks = [job.python(source) for _ in range(3)]
    wait_until(lambda: "rep_0: the processes" in agent.output(), "the line")
    agent.await_collections(3)
    [line] = [line for line in agent.output().splitlines() if "train at once" in line]
    pids = {int(pid) for pid in re.findall(r"the processes (\d+) and (\d+) train at once", line)[0]}
    assert "trainer rep_0" in line and "docs/ranks.md" in line and pids < {rank.pid for rank in ranks}


def test_a_process_that_replaces_its_program_goes_on_and_dies_once(job, tmp_path):
    source = tmp_path / "replaces.py"
    source.write_text("""
import os, sys, time
from persia_metrics import phase, set_step
programs = int(sys.argv[1])
set_step(10 - programs)
with phase("forward"):
    time.sleep(0.6)
if programs > 0:
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(programs - 1)])
os.kill(os.getpid(), 9)
""")
    env = {"PYTHONPATH": str(PYTHON_PACKAGE), "PERSIA_ROLE": "trainer"}
    agent = job.exec(PYTHON, str(source), "2", flags=[f"--report={tmp_path}/run.json"], env=env)
    assert agent.wait(60) == 128 + 9, agent.output()
    summary = json.loads((tmp_path / "run.json").read_text())
    assert (summary["restarts"], summary["redone_steps"]) == (0, 0)
    [rank] = summary["ranks"]
    times = rank["bucket_seconds"]
    assert times["compute"] + times["other"] + times["starting"] + times["down"] == pytest.approx(summary["rank_seconds"])
    assert times["compute"] + times["starting"] > 3 * 0.6 - 0.5 and times["down"] < 1, "only what follows the last collection"
    assert summary["rank_seconds"] > 0.5 * summary["seconds"]
    assert [death["exit"] for death in summary["deaths"]] == ["SIGKILL"], agent.output()
