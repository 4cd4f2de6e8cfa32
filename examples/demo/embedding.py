"""Trains word embeddings with all metrics of the Persia tables, then compares the gateway's values with the job's own counts."""

import json
import sys

import catalog
import table
from job import RULES, agent_command, print_pages, printed_alerts, wait_for
from servers import Gateway, Process, Prometheus, find_built

JOB = "embedding_demo"
NAMES = [entry.name for entry in catalog.entries()]


def run(seconds, directory, segments):
    with Gateway(directory) as gateway, Prometheus(directory, gateway.address, rules=RULES) as prometheus:
        report_file = directory / "report.json"
        command, page = agent_command("exec", JOB, gateway, segments)
        command += ["--", find_built("embedding_job"), f"--duration={seconds:g}", f"--report={report_file}"]
        print_pages(prometheus, "rate(lookup_rpc_time_cost_count[15s])", gateway, page)
        with printed_alerts(prometheus), Process(command, directory / "job.log", show=True) as job:
            code = wait_for(job)
        if code != 0:
            print(f"demo: the job ended with exit code {code}", file=sys.stderr)
        if not report_file.exists():
            sys.exit("demo: the job wrote no report to compare with")
        rows = table.rows(gateway.groups(), json.loads(report_file.read_text()), JOB)
    rows.sort(key=lambda row: NAMES.index(row.name.removesuffix("_sec")))
    print("\n" + table.render(rows) + "\n")
    wrong = table.problems(rows, NAMES)
    for problem in wrong:
        print(f"demo: {problem}", file=sys.stderr)
    if wrong or code != 0:
        return 1
    counts = sum(row.must_agree for row in rows)
    print(f"All {len(NAMES)} Persia metrics arrived; all {counts} counts agree with the job's own, to the last one.")
    return 0
