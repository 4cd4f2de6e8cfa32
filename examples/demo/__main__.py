"""Runs a training job, its agent, a PushGateway and a Prometheus, then compares the gateway's values with the job's own counts."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import elastic
import embedding
from job import Stopped, stop_on_signals


def positive(text):
    seconds = float(text)
    if not 1 <= seconds <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds (1 to {7 * 86400})")
    return seconds


def number_of(what, most):
    def number(text):
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a number of {what} (1 to {most})")
        return int(text)

    return number


def rank_and_phase(text):
    rank, _, phase = text.partition(":")
    if not rank.isdecimal() or phase not in elastic.PHASES:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form RANK:PHASE, for example 1:data (phases: {', '.join(elastic.PHASES)})")
    return int(rank), phase


def main():
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=60, metavar="N", help="how long the job trains (default: 60)")
    other = parser.add_subparsers(dest="demo", metavar="elastic", help="an elastic job on a real etcd instead")
    elastic_parser = other.add_parser("elastic", help="workers that join, die and hang", description=elastic.__doc__)
    add = elastic_parser.add_argument
    add("--workers", type=number_of("workers", 64), default=3, metavar="N", help="number of workers at the start (default: 3)")
    add("--steps", type=number_of("steps", 10**6), default=600, metavar="N", help="steps of the training (default: 600)")
    add("--kill", action="store_true", help="kill a worker, start another, and stop one for a while")
    add("--slow", type=rank_and_phase, metavar="RANK:PHASE", help="make a rank longer in a phase of each step, and print the agent's verdict")
    arguments = parser.parse_args()
    if arguments.demo == "elastic" and arguments.slow and arguments.slow[0] >= arguments.workers:
        parser.error(f"--slow: rank {arguments.slow[0]} is not among {arguments.workers} workers, 0 to {arguments.workers - 1}")
    stop_on_signals()
    prefix = f"persia-demo-{os.getpid()}-"
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    segments = Path(tempfile.mkdtemp(prefix=prefix, dir="/dev/shm"))
    try:
        if arguments.demo == "elastic":
            return elastic.run(arguments.workers, arguments.steps, arguments.kill, arguments.slow, directory, segments)
        return embedding.run(arguments.seconds, directory, segments)
    except Stopped as reason:
        print(f"demo: ended by {reason}", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(segments, ignore_errors=True)


sys.exit(main())
