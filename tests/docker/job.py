"""The demo job of the compose files: its own counts, and those that its agent exported."""

import json
import time
from collections import namedtuple

import catalog
import table
from servers import fetch, wait_until

JOB = "embedding_job"
# Service: PERSIA_ROLE and REPLICA_INDEX.
ROLES = {
    "data_compose": ("data_compose", 0),
    "trainer": ("trainer", 0),
    "middleware": ("middleware", 0),
    "server": ("server", 0),
    "server_1": ("server", 1),
}
NAMES = [entry.name for entry in catalog.entries()]
# A file for compose beside ours: each process also writes its own counts at its end, into a file named by its start.
_COUNTED = """
      entrypoint: [sh, -c, 'exec embedding_job "$$@" --report /reports/{role}-{replica}-$$(date +%s%N).json', sh]
      volumes: ["{reports}:/reports:z"]
"""
_Killed = namedtuple("_Killed", "when counts")


def groups(project):
    """The groups on the gateway."""
    status, body = fetch(project.url("metrics_gateway", 9091) + "/api/v1/metrics")
    if status != 200:
        raise ConnectionError(f"{status}: {body[:300]}")
    return sorted(json.loads(body)["data"], key=lambda group: sorted(group["labels"].items()))


class CountedJob:
    """The job of a project, whose processes report their own counts into the folder `reports`."""

    def __init__(self, reports):
        self._reports = reports
        reports.mkdir()
        reports.chmod(0o777)
        self._killed = {}

    def file(self):
        """Writes the additional compose file, and returns its path."""
        path = self._reports.with_suffix(".yml")
        services = [
            f"  {service}:" + _COUNTED.replace("\n      ", "\n    ").format(role=role, replica=replica, reports=self._reports)
            for service, (role, replica) in ROLES.items()
        ]
        path.write_text("services:\n" + "".join(services))
        return path

    def batches(self, project):
        """The batches that are trained, as the gateway has them."""
        found = table.gateway_values(groups(project), JOB)
        return found.get(table.series_key("embedding_job_batches_total", "trainer", 0, {}), 0)

    def wait_until_it_trains(self, project):
        # A role that connects to an ending one may wait for its whole connect timeout, 60 s.
        before = wait_until(lambda: [self.batches(project)], "the gateway")[0]
        wait_until(lambda: self.batches(project) > before, "more batches on the gateway", 120, interval=0.5)

    def kill(self, project, service):
        """Stops a role, notes the gateway's values of it, and kills it."""
        role, replica = ROLES[service]
        container = project.container(service)
        # Not `docker pause`: the kill of a paused container's first process ends it, but its other processes run on for a moment.
        container.exec("sh", "-c", "kill -STOP -1")
        stopped = time.time()
        # The push that is running may have begun before the last count. The next one has it.
        wait_until(lambda: self._pushed(project, role, replica) > stopped + 5, f"pushes of {service}", 30, interval=0.2)
        values = table.gateway_values(groups(project), JOB)
        counts = {key: value for key, value in values.items() if key[1:3] == (role, f"rep_{replica}")}
        self._killed[role, replica] = _Killed(time.time_ns(), counts)
        container.kill()
        return container

    def _pushed(self, project, role, replica):
        found = [
            float(group["push_time_seconds"]["metrics"][0]["value"])
            for group in groups(project)
            if (group["labels"].get("role"), group["labels"].get("instance")) == (role, f"rep_{replica}")
        ]
        return max(found, default=0)

    def report(self):
        """The sum of all processes' own counts; for killed ones, the gateway's values when they were stopped."""
        merged = {}
        for path in sorted(self._reports.glob("*.json"), key=lambda path: path.stem.rpartition("-")[2]):
            role, replica, started = path.stem.rsplit("-", 2)
            killed = self._killed.get((role, int(replica)))
            if killed is not None and int(started) < killed.when:
                continue
            report = json.loads(path.read_text())
            own = [{**metric, "name": f"{metric['group']}_{metric['name']}"} for metric in report["own_metrics"]]
            for metric in report["metrics"] + [metric for metric in own if metric["type"] == "counter"]:
                _add(merged, metric, killed)
        return {"metrics": list(merged.values())}

    def wait_until_counts_agree(self, project):
        """Waits until the gateway has each count of the job, no more and no less."""
        report = self.report()

        def agree():
            differences = table.problems(table.rows(groups(project), report, JOB), NAMES)
            if differences:
                raise ValueError("\n".join(differences))
            return True

        wait_until(agree, "the job's counts on the gateway", 30, interval=0.5)


def _add(merged, metric, killed):
    """Adds a process's metric to the sum of its role's, which begins with the counts of a killed process."""
    key = table.series_key(metric["name"], metric["role"], metric["replica"], metric["labels"])
    before = merged.get(key)
    if before is None:
        first = killed.counts.get(key, 0) if killed else 0
        before = {"value": first, "count": first[0] if isinstance(first, tuple) else first}
    merged[key] = dict(metric)
    if metric["type"] == "counter":
        merged[key]["value"] += before["value"]
    elif metric["type"] == "time_cost":
        merged[key]["count"] += before["count"]
