"""An elastic job: data-parallel training whose workers may join, die and hang, with its metrics and events. See README.md.

    persia-metrics-agent exec --job moons -- python3 main.py --workers 3 'etcd://localhost:2379/1234?min_workers=2&max_workers=4'
"""

import argparse
import os
import re
import signal
import sys
import time

import persia_metrics
import phases
from coordinator import URL, Coordinator
from etcd import EtcdError
from launcher import NOT_RETRYABLE, Launcher
from process_group import GroupBroken
from state import MyState, train_step
from train_loop import train


class Ledger:
    """A process's actions, one per line, in a file that survives SIGKILL, to compare with its metrics."""

    def __init__(self, directory, role):
        self._file = os.open(f"{directory}/{role}-{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) if directory else None

    def note(self, what):
        if self._file is not None:
            os.write(self._file, what.encode() + b"\n")


def slow(text):
    match = re.fullmatch(rf"(\d+):({'|'.join(phases.NAMES)}):(\d+(?:\.\d+)?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form REPLICA:PHASE:SECONDS, for example 1:data:0.05; phases: {', '.join(phases.NAMES)}")
    return int(match[1]), match[2], float(match[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="etcd://host:port/run_id?min_workers=N&max_workers=M; &timeout=S: how long etcd may not answer")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="number of workers on this machine")
    parser.add_argument("--first-replica", type=int, default=0, metavar="N", help="number of the first worker; different on each machine")
    parser.add_argument("--max-restarts", type=int, default=3, metavar="N", help="how often failed workers are restarted")
    parser.add_argument("--steps", type=int, default=500, metavar="N", help="steps of the whole training")
    parser.add_argument("--step-seconds", type=float, default=0, metavar="S", help="extra time of each step, to simulate a larger model")
    parser.add_argument("--slow", metavar="REPLICA:PHASE:SECONDS", type=slow, help="a worker that is longer in a phase of each step, as a straggler is")
    parser.add_argument("--checkpoint", metavar="FILE", help="shared by all machines (default: ./checkpoint-<run_id>.json)")
    parser.add_argument("--ledger", metavar="DIR", help="folder in which each process logs its actions")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not URL.fullmatch(arguments.url):
        parser.error(f"{arguments.url!r} is not of the form etcd://host:port/run_id?min_workers=N&max_workers=M[&timeout=SECONDS]")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return work(arguments) if arguments.worker else launch(arguments)
    except (EtcdError, GroupBroken) as error:
        print(f"elastic_job: {error}", file=sys.stderr)
        return NOT_RETRYABLE if isinstance(error, EtcdError) else 1


def launch(arguments):
    persia_metrics.init(role="launcher", replica=arguments.first_replica)
    command = [sys.executable, *sys.argv, "--worker"]
    replicas = range(arguments.first_replica, arguments.first_replica + arguments.workers)
    launcher = Launcher(command, replicas, arguments.max_restarts, Ledger(arguments.ledger, "launcher"))
    try:
        return launcher.run()
    finally:
        launcher.stop()


def work(arguments):
    ledger = Ledger(arguments.ledger, f"trainer-{os.environ['REPLICA_INDEX']}")
    state, coordinator = MyState(arguments.steps), Coordinator(arguments.url)
    persia_metrics.set_total_steps(arguments.steps)
    checkpoint = arguments.checkpoint or f"checkpoint-{coordinator.run_id}.json"

    if arguments.slow and arguments.slow[0] == int(os.environ["REPLICA_INDEX"]):
        phases.make_longer(*arguments.slow[1:])

    def step(state):
        with persia_metrics.phase("backward"):
            time.sleep(arguments.step_seconds)
        train_step(state)

    train(coordinator, step, state, checkpoint, ledger)
    if coordinator.group.rank == 0:
        print(f"elastic_job: {state.step} steps, loss {state.loss:.4f}")


if __name__ == "__main__":
    sys.exit(main())
