"""Kills a job's processes, hundreds of times, then compares the gateway's values with the workers' ledgers."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import exposition  # noqa: E402
import goodput  # noqa: E402
from acts import Acts  # noqa: E402
from job import AGENT, RANKS, WORKER, Broken, Job  # noqa: E402
from test_seed import seed as seed_of_tests  # noqa: E402

# Size of the directory's own filesystem, which an act fills.
_FILESYSTEM_BYTES = 128 * 1024 * 1024
_OWN_NAMESPACE = "PERSIA_CHAOS_NAMESPACE"


def enter_namespace():
    """Restarts this program in a namespace where it may mount, if possible. Returns whether it runs in one."""
    if os.environ.get(_OWN_NAMESPACE):
        return True
    for way in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        probe = ["sh", "-c", "mount -t tmpfs -o size=1m chaos /mnt"]
        try:
            if subprocess.run([*way, *probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10).returncode == 0:
                os.environ[_OWN_NAMESPACE] = "1"
                os.execvp(way[0], [*way, sys.executable, *sys.argv])
        except OSError:
            break
    return False


def run(job, kills, seed, can_fill):
    """The problems found: lists of lines, by name."""
    started = time.monotonic()
    watchers = [
        exposition.Watcher("agent", job.agent_address),
        exposition.Watcher("gateway", job.gateway_address),
    ]
    job.start()
    for watcher in watchers:
        watcher.start()
    acts = Acts(job, random.Random(seed), can_fill)
    said = 0
    while sum(job.kills.values()) < kills:
        acts.next()
        if sum(job.kills.values()) // 100 > said:
            said = sum(job.kills.values()) // 100
            print(f"chaos: {sum(job.kills.values())} kills in {time.monotonic() - started:.0f} s", flush=True)
    job.finish()
    body = exposition.scrape(job.gateway_address)
    for watcher in watchers:
        watcher.end()
    if body is None:
        raise Broken("the gateway does not answer")
    lost, doubled, wrong = exposition.compare(body, job.totals)
    wrong += [watcher.broken for watcher in watchers if watcher.broken]
    if not job.mixes_agents:  # another release may not count the ranks' time
        wrong_times, said = goodput.compare(body, job.ranks, RANKS)
        wrong += wrong_times
        print(f"chaos: {said}")
    if job.totals.calls_of_one_thread > 3:
        wrong.append(f"a ledger has {job.totals.calls_of_one_thread} entries of one thread in progress; one call has at most 3")
    totals = job.totals
    print(
        f"chaos: {totals.processes} worker processes, {len(totals.expected())} series compared, {totals.unfinished_calls} calls "
        f"in progress when killed, {watchers[0].scrapes} scrapes of the agent and {watchers[1].scrapes} of the gateway"
    )
    print("chaos: " + ", ".join(f"{name} {count}" for name, count in sorted(acts.done.items())))
    return {"lost": lost, "doubled": doubled, "falls": sum((watcher.falls for watcher in watchers), []), "wrong": wrong}


def keep(directory, segments):
    """Keeps the files for the analysis of a failure after the mount has ended."""
    subprocess.run(["cp", "-a", "--sparse=always", segments, directory / "kept-segments"], check=False)
    return directory


def main():
    parser = argparse.ArgumentParser(prog="./run chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=500, metavar="N", help="how many processes to kill (default: 500)")
    parser.add_argument("--seed", type=int, default=seed_of_tests(), metavar="S", help="draws the acts (default: PERSIA_TEST_SEED, else 1)")
    parser.add_argument("--state-elsewhere", action="store_true", help="the state is not beside the segments; agents with other limits take turns")
    parser.add_argument("--other-agent", type=Path, metavar="FILE", help="the agent of another release, which takes turns with this one")
    arguments = parser.parse_args()
    seed = arguments.seed
    for program in filter(None, (AGENT, WORKER, arguments.other_agent)):
        if not program.exists():
            sys.exit(f"chaos: no {program}: ./run build")
    can_fill = enter_namespace()
    directory = Path(tempfile.mkdtemp(prefix=f"persia-chaos-{os.getpid()}-", dir="/dev/shm"))
    segments = directory / "segments"
    segments.mkdir(mode=0o700)
    if can_fill:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_FILESYSTEM_BYTES},mode=0700", "chaos", segments], check=True)
    else:
        print("chaos: no filesystem can be mounted here: the act that fills it is left out")
    again = f"./run chaos --kills {arguments.kills} --seed {seed}" + (" --state-elsewhere" if arguments.state_elsewhere else "")
    again += f" --other-agent {arguments.other_agent}" if arguments.other_agent else ""
    print(f"chaos: {arguments.kills} kills, seed {seed} (again: {again})", flush=True)
    started = time.monotonic()
    job = Job(directory, segments, seed, arguments.state_elsewhere, arguments.other_agent)
    problems = {"lost": [], "doubled": [], "falls": [], "wrong": []}
    try:
        problems = run(job, arguments.kills, seed, can_fill)
    except (Broken, TimeoutError) as error:
        problems["wrong"].append(str(error))
    finally:
        job.clear()
    for name, lines in problems.items():
        for line in lines[:40]:
            print(f"chaos: {name}: {line}", file=sys.stderr)
    failed = any(problems.values())
    if failed:
        print(f"chaos: FAILED; all of it is kept in {keep(directory, segments)}", file=sys.stderr)
    elif can_fill:
        subprocess.run(["umount", segments], check=False)
    if not failed:
        shutil.rmtree(directory, ignore_errors=True)
    print(
        f"chaos: {sum(job.kills.values())} kills survived (workers {job.kills['workers']}, agent {job.kills['agent']}, "
        f"supervised agent {job.kills['supervised agent']}, gateway {job.kills['gateway']}), lost {len(problems['lost'])}, doubled {len(problems['doubled'])}, "
        f"falls {len(problems['falls'])}, seed {seed}, {time.monotonic() - started:.0f} s"
    )
    return 1 if failed else 0


sys.exit(main())
