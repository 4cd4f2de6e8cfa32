"""Jobs that need no attention: replaced, restarted, in an evaluation, logged by rank 0 alone, finished; by each path, with every metric that the rules
ask for. No alert fires."""

import re

import pytest
import yaml
from shipped_prometheus import CONFIG
from test_prometheus_config import promtool

STEP, SAMPLES = 30, 361  # three hours
HOUR = 3600
RULES = [CONFIG / "rules" / name for name in ("thresholds.yml", "recording.yml", "alerts_job.yml", "alerts_agent.yml", "alerts_gpu.yml")]
RULES += [CONFIG / "rules/optional" / name for name in ("embeddings.yml", "machine.yml", "exporter.yml")]

# Values of a job without problems.
OF_AGENT = {
    "push_failure_time_seconds": 0,
    "persia_agent_push_interval_seconds": 10,
    "persia_exec_running": 1,
    "persia_exec_interrupted": 0,
    'persia_agent_segments{state="live"}': 2,
    "persia_agent_config_last_reload_successful": 1,
    "persia_agent_config_last_reload_success_timestamp_seconds": 0,
    'persia_agent_push_consecutive_failures{gateway="g:9091"}': 0,
    'persia_agent_pushes_total{gateway="g:9091", result="success"}': lambda at: at // 10,
    'persia_agent_pushes_total{gateway="g:9091", result="unreachable"}': 0,
    'persia_agent_remote_write_oldest_pending_timestamp_seconds{target="t"}': lambda at: at,
    'persia_agent_remote_write_samples_failed_total{target="t", status="400"}': 0,
    'persia_agent_remote_write_samples_dropped_total{target="t", reason="queue_age"}': 0,
    'persia_agent_remote_write_pending_bytes{target="t"}': 100,
    'persia_agent_remote_write_queue_max_bytes{target="t"}': 1000000,
    'persia_agent_quarantined_series{reason="gateway"}': 0,
    'persia_agent_dropped_series{reason="max_series"}': 0,
    "persia_agent_retired_series_dropped_total": 0,
    "persia_agent_metrics_dir_free_bytes": 900,
    "persia_agent_metrics_dir_size_bytes": 1000,
    'persia_agent_segments_refused{reason="version"}': 0,
    "persia_agent_segments_broken": 0,
    "persia_agent_identity_conflicts": 0,
    "persia_agent_event_records_lost_total": 0,
    'persia_agent_fifo_lines_total{result="bad"}': 0,
    "persia_agent_ticks_skipped_total": 0,
    "persia_agent_build_info": 1,
    "persia_agent_gpu_reader_up": 1,
    "persia_job_hung": 0,
    "persia_job_hang_after_seconds": 60,
    "persia_job_unchanged_seconds": 0,
    'persia_job_throughput{counter="my_app_steps_total"}': 2,
    "persia_cgroup_memory_limit_bytes": 1000,
    "persia_cgroup_memory_working_set_bytes": 900,
    'persia_cgroup_memory_events_total{event="oom_kill"}': 1,
    "persia_cgroup_cpu_cfs_periods_total": lambda at: 10 * at,
    "persia_cgroup_cpu_cfs_throttled_periods_total": lambda at: at,
    'persia_filesystem_size_bytes{use="shm"}': 1000,
    'persia_filesystem_avail_bytes{use="shm"}': 100,
    'persia_filesystem_files{use="shm"}': 1000,
    'persia_filesystem_files_free{use="shm"}': 100,
    'persia_filesystem_device_error{use="shm"}': 0,
    'persia_network_receive_errs_total{device="eth0"}': 5,
    'persia_network_transmit_errs_total{device="eth0"}': 0,
    "persia_network_tcp_transmit_segments_total": lambda at: 100 * at,
    "persia_network_tcp_retransmit_segments_total": lambda at: at,
    'persia_infiniband_link_downed_total{device="mlx5_0", port="1"}': 2,
    'persia_infiniband_state_id{device="mlx5_0", port="1"}': 4,
    'persia_infiniband_symbol_error_total{device="mlx5_0", port="1"}': 3,
    'persia_infiniband_port_receive_errors_total{device="mlx5_0", port="1"}': 0,
    'persia_infiniband_link_error_recovery_total{device="mlx5_0", port="1"}': 0,
}
OF_RANK = {
    'persia_process_up{process="0"}': 1,
    'persia_process_died{process="0"}': 0,
    'persia_process_hung{process="0"}': 0,
    'persia_process_last_change_timestamp_seconds{process="0"}': lambda at: at,
    'persia_process_restarts_total{process="0"}': 0,
    'persia_process_segment_used_ratio{process="0"}': 0.1,
    'persia_metrics_dropped_total{reason="bad_value"}': 0,
    'persia_rank_phase_seconds_per_step{phase="forward"}': 0.4,
    'persia_rank_phase_seconds_per_step{phase="sync"}': 0.1,
    'persia_rank_in_phase_seconds{phase="forward"}': 0.2,
    "persia_phase_step": lambda at: 2 * at,
    "torchelastic_worker_group_remaining_restarts": 3,
    'torchelastic_rendezvous_total{result="failure"}': 0,
    "torchelastic_train_step_duration_seconds_count": lambda at: 2 * at,
    "lookup_batched_time_cost_count": lambda at: 2 * at,
    "torchelastic_checkpoint_write_latency_seconds_count": lambda at: at // 600,
    'persia_event_last_timestamp_seconds{event="checkpoint", type="my_app"}': lambda at: at // 600 * 600,
    'persia_event_interval_seconds_sum{event="checkpoint", type="my_app"}': lambda at: at // 600 * 600,
    'persia_event_interval_seconds_count{event="checkpoint", type="my_app"}': lambda at: at // 600,
    'nan_count{feat="user"}': 0,
    'nan_grad_skipped{feat="user"}': 0,
    "staleness": 1,
    "num_pending_batches": 1,
    'persia_gpu_up{gpu="0"}': 1,
    'persia_gpu_utilization_ratio{gpu="0"}': lambda at: 0.9 if at % 600 else 0,
    'persia_gpu_throttled{gpu="0", reason="sw_power_cap"}': 1,
    'persia_gpu_ecc_errors_total{gpu="0", kind="uncorrected"}': 0,
    'persia_gpu_row_remap_failed{gpu="0"}': 0,
    'persia_gpu_xid_errors_total{gpu="0", xid="79", class="fatal"}': 0,
    "index_miss_ratio": 0.1,
    "my_app_loss": lambda at: 1 / (1 + at),
    'persia_gauge_nan_series{gauge="my_app_loss"}': lambda at: 1 if at % 600 == 300 else None,  # of one step
    'persia_rank_seconds_total{bucket="compute"}': lambda at: 0.8 * at,
    'persia_rank_seconds_total{bucket="sync"}': lambda at: 0.2 * at,
}
SERVERS = {
    'up{job="persia_gateways", instance="g:9091"}': 1,
    'up{job="persia_agents", instance="a:19091"}': 1,
    'scrape_samples_post_metric_relabeling{job="persia_agents", instance="a:19091"}': 100,
    'prometheus_sd_discovered_targets{config="persia_gateways"}': 1,
}


def value_at(value, at):
    return value(at) if callable(value) else value


class Matrix:
    def __init__(self):
        self.series = []

    def add(self, name, labels, value, alive=lambda at: True, keeps=False):
        """A series with samples while `alive`; `keeps`: then the last value, as on a gateway."""
        base, _, more = name.partition("{")
        own = ", ".join(filter(None, [more.rstrip("}"), *(f'{key}="{label}"' for key, label in labels.items())]))
        samples, last = [], None
        for at in range(0, SAMPLES * STEP, STEP):
            if alive(at):
                last = value_at(value, at)
            if last is not None and (alive(at) or keeps):
                samples.append(f"{last:g}" if last < 1e5 else str(last))
            else:  # a series that the agent does not export any more is stale; one whose agent is away just has no samples
                samples.append("stale" if alive(at) and samples and samples[-1] != "_" else "_")
        self.series.append({"series": f"{base}{{{own}}}", "values": " ".join(samples)})

    def agent(self, job, path, host=0, address=None, alive=lambda at: True, agent=(), rank=(), has_gpus=True):
        """An agent with one rank, and what differs from OF_AGENT and OF_RANK."""
        labels = {"job": f"{job}_{path}", "instance": f"rep_{host}", "ip_addr": address or f"10.0.0.{host}"}
        if path == "scrape":
            labels["metrics_path"] = "agent"
        keeps = path == "gateway"
        for role, usual, more in (("agent", OF_AGENT, agent), ("trainer", OF_RANK, rank)):
            values = {**usual, **dict(more)}
            if not has_gpus:
                values = {name: value for name, value in values.items() if not name.startswith("persia_gpu_")}
            if path == "gateway":
                values["push_time_seconds"] = lambda at: at
            else:
                values.pop("push_failure_time_seconds", None)
            if path == "scrape" and role == "agent":
                values["process_start_time_seconds"] = 0
            for name, value in values.items():
                self.add(name, {**labels, "role": role}, value, alive, keeps)


def build(path):
    matrix = Matrix()
    # A pod with another address takes over two minutes later; its rank goes on at once.
    matrix.agent("replaced", path, address="10.0.1.1", alive=lambda at: at < HOUR)
    since = {"persia_agent_config_last_reload_success_timestamp_seconds": HOUR + 60}
    matrix.agent("replaced", path, address="10.0.1.9", alive=lambda at: at >= HOUR + 60, agent=since)
    # The agent is away for a minute, and its rank is replaced within another one.
    died = {
        'persia_process_up{process="0"}': lambda at: 0 if HOUR + 120 <= at < HOUR + 180 else 1,
        'persia_process_died{process="0"}': lambda at: 1 if HOUR + 120 <= at < HOUR + 180 else 0,
        'persia_process_restarts_total{process="0"}': lambda at: 0 if at < HOUR + 180 else 1,
        'persia_process_last_exit_info{process="0", reason="SIGKILL"}': lambda at: None if at < HOUR + 120 else 1,
    }
    back = {"persia_agent_config_last_reload_success_timestamp_seconds": lambda at: 0 if at < HOUR else HOUR + 60}
    matrix.agent("restarted", path, alive=lambda at: not HOUR <= at < HOUR + 60, agent=back, rank=died)
    matrix.agent("restarted", path, host=1)

    # Ten minutes in each hour, with GPUs two and a half; from the first one, the agents learn. Rank 0 evaluates alone, and the other host waits for it.
    for name, length, has_gpus in (("evaluating", 600, False), ("evaluating_on_gpus", 150, True)):

        def paused(at, length=length):
            return at % HOUR if at >= HOUR and at % HOUR < length else 0

        def steps(at, length=length):
            return 2 * (at - max(0, at // HOUR - 1) * length - (min(at % HOUR, length) if at >= HOUR else 0))

        for host in range(2):
            waits = {
                "persia_job_hung": lambda at, paused=paused: 1 if 60 <= paused(at) and at < 2 * HOUR else 0,
                "persia_job_hang_after_seconds": lambda at, length=length: 60 if at < HOUR + length else 3 * length,
                "persia_job_unchanged_seconds": paused,
                'persia_job_throughput{counter="my_app_steps_total"}': lambda at, paused=paused: 0 if paused(at) else 2,
            }
            stands = {"torchelastic_train_step_duration_seconds_count": steps, "lookup_batched_time_cost_count": steps}
            matrix.agent(name, path, host, agent=waits, rank=stands, has_gpus=has_gpus)
            alone = {} if host == 0 else waits
            hung = {
                'persia_process_hung{process="0"}': lambda at, paused=paused: 1 if 60 <= paused(at) and at < 2 * HOUR else 0,
                'persia_process_last_change_timestamp_seconds{process="0"}': lambda at, paused=paused: at - paused(at),
                'persia_rank_in_phase_seconds{phase="forward"}': lambda at, paused=paused: None if paused(at) else 0.2,
                'persia_rank_in_phase_seconds{phase="sync"}': lambda at, paused=paused: paused(at) or None,
            }
            hung = {} if host == 0 else hung
            matrix.agent(f"{name}_alone", path, host, agent=alone, rank=hung, has_gpus=has_gpus)
    # The rank of the second host has changed once, at its start.
    matrix.agent("logging", path)
    matrix.agent("logging", path, host=1, agent={"persia_job_unchanged_seconds": lambda at: at})
    # Both hosts end, the second one four minutes later.
    for host in range(2):
        end = HOUR + 240 * host
        over = {
            "persia_exec_running": lambda at, end=end: 1 if at < end else 0,
            "persia_exec_exit_code": lambda at, end=end: None if at < end else 0,
            'persia_agent_segments{state="live"}': lambda at, end=end: 1 if at < end else 0,
        }
        left = {
            'persia_process_up{process="0"}': lambda at, end=end: 1 if at < end else 0,
            'persia_process_last_exit_info{process="0", reason="exit_0"}': lambda at, end=end: None if at < end else 1,
        }
        matrix.agent("finished", path, host, alive=lambda at, end=end: at <= end, agent=over, rank=left)
    for name, value in SERVERS.items():
        matrix.add(name, {}, value)
    return matrix.series


@pytest.mark.parametrize("path", ["gateway", "scrape", "remote_write"])
def test_no_alert_fires(path, tmp_path):
    series = build(path)
    rules = [rule for file in RULES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    text = " ".join(re.sub(r'\{[^}]*\}|"[^"]*"|\([^()]*\bfor\b[^()]*\)', "", rule["expr"]) for rule in rules)
    asked = set(re.findall(r"(?<![\w:])(?:persia|torchelastic|push|nan)_\w+", text)) - {"persia_agents", "persia_gateways"}
    have = {each["series"].partition("{")[0] for each in series} | recorded
    missing = {"push_time_seconds", "push_failure_time_seconds"} if path != "gateway" else set()
    assert asked - have == missing, "each metric of the rules is in the matrix"
    case = {
        "interval": f"{STEP}s",
        "input_series": series,
        "promql_expr_test": [
            {"expr": 'count by (alertname, job) (count_over_time(ALERTS{alertstate="firing"}[3h]))', "eval_time": "3h", "exp_samples": []},
        ],
    }
    content = {
        "rule_files": [str(file) for file in RULES],
        "evaluation_interval": "30s",
        "group_eval_order": [group["name"] for file in RULES for group in yaml.safe_load(file.read_text())["groups"]],
        "tests": [case],
    }
    (tmp_path / "matrix.yml").write_text(yaml.safe_dump(content, width=1000000))
    result = promtool("test", "rules", str(tmp_path / "matrix.yml"))
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
