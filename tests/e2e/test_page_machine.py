"""The page's sections on the machine under the ranks, with GPUs of a stand-in for NVIDIA's library, and on goodput."""

import json
import re

import pytest
from conftest import agent_with_mount
from memory_cgroup import memory_cgroup
from servers import fetch, wait_until

TEXT = "return document.querySelector(arguments[0])?.innerText ?? ''"
# The cells of each row by the title of their column, without those that are hidden.
ROWS = """return [...document.querySelectorAll('#machine-body tr')].map((row) => Object.fromEntries(
  [...row.children].filter((cell) => cell.checkVisibility()).map((cell) => [cell.dataset.label ?? 'Rank', cell.innerText])))"""
MARKED = "return [...document.querySelectorAll('#machine-body td.near')].map((cell) => [cell.dataset.label, cell.innerText])"
# Of each part of the bar: the bucket, its share of the bar, and its share as its title says.
PARTS = r"""const bar = document.querySelector('#goodput-bar');
return [...bar.children].map((part) => [
  part.title.split(' ')[0], part.getBoundingClientRect().width / bar.getBoundingClientRect().width, Number(part.title.match(/\(([\d.]+) %\)/)[1]) / 100])"""
SIZE = r"[\d.]+ [KMGT]?i?B"

HOLDS_MEMORY = """
from persia_metrics import Counter
Counter("my_app", "steps").inc()
print("joins", flush=True)
input()
held = bytearray(b"x") * (60 << 20)
print("holds", flush=True)
input()
"""
OPENS_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
files = [open("/dev/null") for _ in range(90)]
from persia_metrics import Counter
Counter("my_app", "steps").inc()
input()
"""
TRAINS = """
from persia_metrics import phase, set_step
set_step({first})
with phase("forward"):
    set_step({last})
    print("trains")
    input()
"""


def unfolded(browser):
    """The sections are folded at first."""
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return browser


def shows(browser, selector, pattern):
    """Waits until the text of an element has the pattern."""

    def seen():
        text = browser.run(TEXT, selector)
        if not re.search(pattern, text):
            raise ValueError(f"{selector}: {text!r}")
        return True

    wait_until(seen, f"{pattern!r} in {selector}")


def status(agent):
    return json.loads(fetch(agent.url + "/api/v1/status")[1])


@pytest.mark.needs("memory-cgroup")
def test_memory_near_its_limit_is_marked(job, browse):
    agent = job.agent()
    worker = job.python(HOLDS_MEMORY)
    worker.wait_for("joins")
    with memory_cgroup(64 << 20) as group:
        group.add(worker.pid)
        browser = unfolded(browse(agent.url))
        shows(browser, "#tile-memory", r"[\d.]+( KiB| B)? of 64 MiB\n.*no OOM kills")
        assert "memory" not in browser.text("#machine-count")
        worker.go()
        worker.wait_for("holds")
        shows(browser, "#tile-memory", r"6\d(\.\d)? of 64 MiB\n9\d %")
        shows(browser, "#machine-count", "look at memory of the job")
        assert browser.run("return document.querySelector('#tile-memory').className") == "tile near"
        worker.succeed()


def test_disks_network_and_files_of_a_running_job_are_shown(job, browse):
    agent = job.agent()
    worker = job.python(OPENS_FILES)
    browser = unfolded(browse(agent.url))
    shows(browser, "#tile-disks", rf"(?m)^/dev/shm(, [\w ]+)*: {SIZE} free of {SIZE}$")
    shows(browser, "#tile-disks", rf"(?m)working directory: {SIZE} free of {SIZE}$")
    # The page's own requests are the traffic.
    shows(browser, "#tile-network", r"TCP segments resent$")
    [row] = wait_until(lambda: [row for row in browser.run(ROWS) if "of 100" in row["Open files"]], "the rank's files and their limit")
    assert row["Rank"] == "trainer rep_0" and int(row["Open files"].split()[0]) >= 90
    assert not {"GPU", "Busy", "Errors"} & set(row), "without a GPU its columns are hidden"
    wait_until(lambda: re.match(SIZE, browser.run(ROWS)[0]["Memory (PSS)"]), "the rank's memory")
    assert browser.run(MARKED) == [["Open files", row["Open files"]]] and "rep_0" in browser.text("#machine-count")
    browser.find("#machine-body button").click()
    assert browser.text("#focus-name") == "trainer rep_0"
    assert browser.complaints() == []
    worker.succeed()


# Files of the kernel's form take the place of an adapter.
@pytest.mark.needs("mounts")
def test_infiniband_without_an_active_port_is_marked(job, browse, tmp_path):
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    words = port / "counters/port_rcv_data"
    words.write_text("0\n")
    (port / "counters/port_xmit_data").write_text("0\n")
    agent = job.agent(program=agent_with_mount(tmp_path, f"mount --bind {tmp_path}/class /sys/class"))
    job.worker().tell("count my_app steps 1")
    browser = unfolded(browse(agent.url))
    shows(browser, "#tile-infiniband", r"^InfiniBand\n0 B/s in, 0 B/s out\n1 of 1 port active")
    assert "InfiniBand" not in browser.text("#machine-count")
    words.write_text(f"{1 << 30}\n")
    shows(browser, "#tile-infiniband", r"[\d.]+ [MG]iB/s in, 0 B/s out")
    (port / "state").write_text("1: DOWN\n")
    shows(browser, "#tile-infiniband", "0 of 1 port active")
    shows(browser, "#machine-count", "look at InfiniBand")
    assert browser.run("return document.querySelector('#tile-infiniband').className") == "tile near"


def test_each_rank_has_its_gpu_and_what_is_wrong_with_it(host, browse, monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    # Device 2 is of no rank. 64 is `hw_thermal`, 4 the limit of power, which a busy device may reach.
    troubles = ["set throttle 0 68", "set ecc_corrected 1 0"]
    agent = host.start("devices 3", "do nvmlDeviceGetComputeRunningProcesses error 3", *troubles)
    for number in (0, 1):
        host.rank(number, CUDA_VISIBLE_DEVICES=f"GPU-0000000{number}-0000-0000-0000-000000000000")
    host.wait_for_ranks(gpu_0="rep_0", gpu_1="rep_1", gpu_2="no_rank")
    browser = unfolded(browse(agent.url))
    rows = wait_until(lambda: len(rows := browser.run(ROWS)) == 3 and rows, "a row for each")
    assert [(row["Rank"].strip(), row["GPU"]) for row in rows] == [("trainer rep_0", "0"), ("trainer rep_1", "1"), ("no rank", "2")]
    first = {name: rows[0][name] for name in ("Busy", "GPU memory", "Heat", "Power", "Throttled by", "Errors")}
    assert first == {
        "Busy": "90 %",
        "GPU memory": "20 of 80 GiB",
        "Heat": "61 °C",
        "Power": "350 of 700 W",
        "Throttled by": "hw thermal, sw power cap",
        "Errors": "ECC 4 corrected",
    }
    assert (rows[1]["Throttled by"], rows[1]["Errors"]) == ("nothing", "none")
    assert browser.run(MARKED) == [["Throttled by", "hw thermal, sw power cap"]]
    host.add("xid 1 79", "xid 1 79", "lost 1")
    wait_until(lambda: ["Errors", "XID 79 (2 times)"] in browser.run(MARKED), "the errors")
    wait_until(lambda: ["GPU", "1 lost"] in browser.run(MARKED), "the loss")
    shows(browser, "#machine-count", "look at .*rep_1")
    assert browser.complaints() == []


def test_goodput_says_where_the_time_of_the_ranks_went(job, browse):
    agent = job.agent()
    first = job.python(TRAINS.format(first=0, last=9))
    first.wait_for("trains")
    wait_until(lambda: (status(agent)["goodput"] or {"bucket_seconds": {}})["bucket_seconds"].get("compute", 0) > 0.5, "half a second of computing")
    first.kill()
    wait_until(lambda: status(agent)["deaths"], "the end of the rank")
    second = job.python(TRAINS.format(first=4, last=12))
    second.wait_for("trains")
    browser = unfolded(browse(agent.url))
    told = r"^The ranks computed steps that are kept in [\d.]+ % of their time: 1 restart, 6 steps redone, mean time to repair [\d.]+ m?s\.$"
    shows(browser, "#goodput-text", told)
    parts = browser.run(PARTS)
    assert {"compute", "down"} <= {bucket for bucket, _, _ in parts}
    assert sum(share for _, share, _ in parts) == pytest.approx(1, abs=0.02)
    for bucket, share, said in parts:
        assert share == pytest.approx(said, abs=0.02), bucket
    # Between two answers of the agent the share may change.
    wait_until(
        lambda: re.search(r"compute [\d.]+ m?s \(([\d.]+ %)\)", browser.text("#goodput-legend"))[1] in browser.text("#goodput-text"),
        "the same share in the bar and in words",
    )
    shows(browser, "#goodput-count", r"^[\d.]+ %, 1 restart$")
    shows(browser, "#tile-goodput .detail", r"^(down|unmarked|starting) [\d.]+ %")
    wait_until(lambda: browser.text("#tile-goodput .value") == browser.text("#goodput-count").split(",")[0], "one percentage for one thing")
    assert browser.complaints() == []
    second.succeed()


def test_without_machine_gpu_and_phases_nothing_is_shown(job, browse):
    agent = job.agent("--machine-metrics=false", "--gpu=off")
    job.worker().tell("count my_app steps 1")
    browser = unfolded(browse(agent.url))
    shows(browser, "#workers-body", "rep_0")
    browser.wait_for("return document.querySelector('#workers').checkVisibility()", "the table of workers")
    assert browser.text("#tile-goodput .value") == "not known" and browser.text("#tile-goodput .detail").startswith("mark phases by ")
    assert not browser.find("#machine").is_displayed() and not browser.find("#goodput").is_displayed()
    assert (status(agent)["machine"], status(agent)["goodput"]) == (None, None)
