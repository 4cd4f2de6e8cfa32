"""A real Prometheus on a copy of config/prometheus, with its targets and alerts."""

import json
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/demo"))

from servers import ROOT, Prometheus, Server, fetch, find_program, free_port  # noqa: E402

CONFIG = ROOT / "config/prometheus"

# Seconds instead of minutes, for agents that push every 0.2 s; 840 s are threshold:hang_wait:seconds.
SHORT = {
    "interval: 10s": "interval: 1s",
    "evaluation_interval: 15s": "evaluation_interval: 1s",
    "max by (job) (persia_agent_push_interval_seconds), 60)": "max by (job) (persia_agent_push_interval_seconds), 4)",
    "(last_over_time(persia_agent_push_interval_seconds[1h])), 60)": "(last_over_time(persia_agent_push_interval_seconds[1h])), 4)",
    "[1h:30s]": "[1h:1s]",
    "expr: vector(840)": "expr: vector(3)",
    "for: 1m": "for: 1s",
    "for: 2m": "for: 2s",
    "for: 5m": "for: 3s",
    "for: 15m": "for: 4s",
}


class ShippedPrometheus(Prometheus):
    """Runs one of the shipped files. `replace` has a test's changes: only addresses and intervals. `alertmanager`: its address, which is
    configured as the README says."""

    def __init__(self, directory, file, replace, alertmanager=None, flags=()):
        home = Path(directory) / "prometheus"
        shutil.copytree(CONFIG, home)
        address = f"127.0.0.1:{free_port()}"
        for old, new in {"localhost:9090": address, **replace}.items():
            found = [path for path in home.rglob("*.yml") if old in path.read_text()]
            assert found, f"nothing says {old!r}"
            for path in found:
                path.write_text(path.read_text().replace(old, new))
        if alertmanager:
            block = re.search(r"```yaml\n(alerting:.*?)```", (CONFIG / "README.md").read_text(), re.S)[1]
            with open(home / file, "a") as config:
                config.write(block.replace("alertmanager:9093", alertmanager))
        program = find_program("prometheus")
        command = [program, f"--config.file={home / file}", f"--storage.tsdb.path={home / 'tsdb'}"]
        command += [f"--web.listen-address={address}", *self.assets(program, "web"), "--log.level=warn", *flags]
        Server.__init__(self, command, home / "prometheus.log", address, "/-/ready")

    def _api(self, path):
        return json.loads(fetch(f"{self.url}/api/v1/{path}")[1])["data"]

    def targets(self, job):
        """Labels of each target of a scrape job, with `up` among them."""
        active = self._api("targets?state=active")["activeTargets"]
        return sorted(
            ({**target["labels"], "url": target["scrapeUrl"], "up": target["health"]} for target in active if target["scrapePool"] == job),
            key=lambda labels: labels["url"],
        )

    def alerts(self, state="firing"):
        """Name and training job of each alert in this state."""
        return {(alert["labels"]["alertname"], alert["labels"].get("job")) for alert in self._api("alerts")["alerts"] if alert["state"] == state}
