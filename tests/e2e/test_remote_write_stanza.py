"""An entry of `remote_write` as in a prometheus.yml: what promtool takes, the agent takes, and does the same with it."""

import json
import re
import signal
import subprocess
import urllib.parse

import pytest
from conftest import AGENT
from remote_write_databases import Database, PrometheusReceiver, VictoriaMetrics
from servers import Process, find_program, wait_until
from test_remote_write import sent
from tls import Authority, bcrypt


SECRET = "hunter2"
# All that Debian's Prometheus knows and the agent does.
FULL = """
- url: https://127.0.0.1:{port}/api/v1/write
  name: db
  remote_timeout: 1m30s
  headers:
    X-Scope-OrgID: team
  basic_auth:
    username: trainer
    password_file: secrets/password
  tls_config:
    ca_file: ca.pem
    server_name: db.example.com
    min_version: TLS12
  follow_redirects: true
  enable_http2: false
  send_exemplars: false
  send_native_histograms: false
  queue_config:
    min_shards: 1
    max_samples_per_send: 2000
    min_backoff: 30ms
    max_backoff: 5s
    retry_on_http_429: true
  metadata_config:
    send: true
    send_interval: 1m
    max_samples_per_send: 500
  write_relabel_configs:
    - source_labels: [__name__]
      regex: persia_process_.*
      action: drop
    - source_labels: [instance]
      regex: rep_(.*)
      target_label: replica
      replacement: no-${{1}}
    - source_labels: [role]
      target_label: team
      action: uppercase
    - regex: ip_addr
      action: labeldrop
"""
SIMPLE = "- url: http://127.0.0.1:1/w\n"
# What the agent refuses, by the words that say what to use. Promtool takes each.
REFUSED = {
    "  sigv4: {region: eu, access_key: a, secret_key: hunter2}\n": "sigv4: the agent does not sign requests; set url to a proxy that signs them",
    "  oauth2: {client_id: a, client_secret: hunter2, token_url: 'http://t/'}\n": "oauth2: the agent fetches no tokens; let another program",
}
NOTES = {
    "  queue_config: {capacity: 5000, max_shards: 200, batch_send_deadline: 5s}\n": "queue_config: max_shards: has no effect: one request at a time is sent",
    "  enable_http2: true\n": "enable_http2: has no effect: requests are HTTP/1.1",
    "  send_exemplars: true\n": "send_exemplars: has no effect",
}


# Usual forms, each an entry, or two.
PASTED = {
    "two tenants": "- url: http://h/w\n  headers: {X-Scope-OrgID: a}\n- url: http://h/w\n  headers: {X-Scope-OrgID: b}\n",
    "a merge key": "- &t\n  url: http://a/w\n  remote_timeout: 5s\n- <<: *t\n  url: http://b/w\n",
    "True": SIMPLE + "  follow_redirects: True\n",
    "On": SIMPLE + "  follow_redirects: On\n",
    "a proxy without scheme": SIMPLE + "  proxy_url: proxy:3128\n",
    "no proxy": SIMPLE + "  proxy_url: ''\n",
    "a proxy with a path": SIMPLE + "  proxy_url: http://proxy:3128/path\n",
    "a long timeout": SIMPLE + "  remote_timeout: 2h\n",
    "min_backoff alone": SIMPLE + "  queue_config: {min_backoff: 30s}\n",
    "no user": SIMPLE + "  basic_auth: {}\n",
    "no credentials": SIMPLE + "  authorization: {type: Bearer}\n",
    "no name": SIMPLE + "  name: ''\n",
    "no regex": SIMPLE + "  write_relabel_configs: [{source_labels: [a], regex: , target_label: b}]\n",
}


def indented(stanza):
    return "PersiaMetricsConfig:\n  remote_write:\n" + "".join(f"    {line}\n" for line in stanza.strip().splitlines())


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "etc"
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets/password").write_text(SECRET + "\n")
    return folder


def check_both(folder, stanza):
    """The results of `promtool check config` and of our `check-config`, run elsewhere than where the files are."""
    (folder / "prometheus.yml").write_text("remote_write:\n" + "".join(f"  {line}\n" for line in stanza.strip().splitlines()))
    (folder / "global_config.yaml").write_text(indented(stanza))
    options = {"capture_output": True, "text": True, "timeout": 30, "cwd": "/"}
    theirs = subprocess.run([find_program("promtool"), "check", "config", folder / "prometheus.yml"], **options)
    ours = subprocess.run([AGENT, "check-config", f"--config={folder / 'global_config.yaml'}"], **options)
    assert SECRET not in ours.stdout + ours.stderr
    return theirs, ours


def test_a_full_entry_passes_both_checks(folder):
    Authority(folder)
    theirs, ours = check_both(folder, FULL.format(port=1))
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout.splitlines()[0].endswith("global_config.yaml: good"), "no note"
    assert "db at https://127.0.0.1:1/api/v1/write" in ours.stdout


@pytest.mark.parametrize("keys", REFUSED, ids=lambda keys: keys.split(":")[0].strip())
def test_what_the_agent_cannot_do_is_refused_with_what_to_use(folder, keys):
    theirs, ours = check_both(folder, SIMPLE + keys)
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert ours.returncode == 2
    assert REFUSED[keys] in ours.stderr
    assert re.search(r"global_config\.yaml:4:\d+: ", ours.stderr)


def test_what_has_no_effect_is_said_and_passes(folder):
    theirs, ours = check_both(folder, SIMPLE + "".join(NOTES))
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert ours.returncode == 0, ours.stderr
    assert [note for note in NOTES.values() if note not in ours.stdout] == []


@pytest.mark.parametrize("entry", PASTED)
def test_usual_forms_pass_both_checks(folder, entry):
    theirs, ours = check_both(folder, PASTED[entry])
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout.count(" at http://") == PASTED[entry].count("url: http://") - PASTED[entry].count("proxy_url: http://")


class LockedPrometheus(PrometheusReceiver):
    """Behind TLS and a password, by its own web configuration."""

    def __init__(self, tmp_path, started, certificate, more_tls=""):
        self.web = tmp_path / "web.yml"
        self.web.write_text(
            f"tls_server_config: {{cert_file: {certificate[0]}, key_file: {certificate[1]}{more_tls}}}\n"
            f"basic_auth_users: {{trainer: {bcrypt(SECRET)}}}\n"
        )
        super().__init__(tmp_path, started)

    def start(self):
        self.process = Process(self.command(), self.directory / "log")
        self._started(self.process)
        wait_until(lambda: self.series("nothing") == [], "the database")

    def command(self):
        return [*super().command(), f"--web.config.file={self.web}"]

    def series(self, name):
        curl = ["curl", "-sk", "-u", f"trainer:{SECRET}", f"https://127.0.0.1:{self.port}/api/v1/series?match[]={name}", "-g"]
        answer = subprocess.run(curl, capture_output=True, text=True, timeout=30).stdout
        return json.loads(answer)["data"]  # before the server listens: a ValueError, after which wait_until tries again


def test_a_full_entry_sends_to_a_prometheus_with_tls_and_a_password(folder, job, tmp_path, started):
    authority = Authority(folder)
    db = LockedPrometheus(tmp_path, started, authority.issue("server", "DNS:db.example.com"))
    (folder / "agent.yaml").write_text(indented(FULL.format(port=db.port)))
    agent = job.agent(f"--config={folder / 'agent.yaml'}")
    job.worker(replica=3).tell("count my_app batches 5")
    (series,) = wait_until(lambda: db.series("my_app_batches"), "the series")
    assert (series["replica"], "ip_addr" in series, series["team"]) == ("no-3", False, series["role"].upper())
    assert db.series("persia_process_up") == []
    wait_until(lambda: sent(agent, "metadata_total", target="db") > 20, "the metadata")
    assert sent(agent, "metadata_failed_total", target="db") == 0
    assert sent(agent, "samples_failed_total", target="db") == 0
    assert SECRET not in agent.output()


def reload(agent, config, stanza):
    """Replaces the file of settings at once, so that the agent never reads a part of it."""
    draft = config.with_suffix(".draft")
    draft.write_text(indented(stanza))
    draft.rename(config)
    agent.signal(signal.SIGHUP)


def test_verification_may_be_skipped(folder, job, tmp_path, started):
    db = LockedPrometheus(tmp_path, started, Authority(folder).issue("server", "DNS:elsewhere"))
    stanza = f"- url: https://127.0.0.1:{db.port}/api/v1/write\n  basic_auth: {{username: trainer, password: {SECRET}}}\n"
    config = folder / "agent.yaml"
    config.write_text(indented(stanza))
    agent = job.agent(f"--config={config}")
    wait_until(lambda: "certificate is refused" in agent.output(), "the refusal")
    reload(agent, config, stanza + "  tls_config: {insecure_skip_verify: true}\n")
    wait_until(lambda: db.series("persia_agent_series"), "the series")


def test_the_version_of_tls_and_certificates_in_the_file_are_used(folder, job, tmp_path, started):
    """A server of TLS 1.3 only. With CA and client certificate in the entry itself."""
    authority = Authority(folder)
    server, client = authority.issue("server", "IP:127.0.0.1"), authority.issue("client", "DNS:client")
    db = LockedPrometheus(tmp_path, started, server, f", min_version: TLS13, client_ca_file: {authority.file}, client_auth_type: VerifyClientCertIfGiven")
    pems = {"ca": authority.file, "cert": client[0], "key": client[1]}
    inline = "".join(f"    {key}: |\n" + "".join(f"      {line}\n" for line in file.read_text().splitlines()) for key, file in pems.items())
    stanza = f"- url: https://127.0.0.1:{db.port}/api/v1/write\n  basic_auth: {{username: trainer, password: {SECRET}}}\n  tls_config:\n{inline}"
    config = folder / "agent.yaml"
    config.write_text(indented(stanza + "    max_version: TLS12\n"))
    agent = job.agent(f"--config={config}")
    wait_until(lambda: "no TLS connection" in agent.output(), "the refusal")
    reload(agent, config, stanza + "    min_version: TLS13\n")
    wait_until(lambda: db.series("persia_agent_series"), "the series")
    assert "PRIVATE" not in agent.output()


@pytest.mark.parametrize("by", ["proxy_url", "environment"])
def test_requests_go_through_the_proxy(receiver, job, tmp_path, monkeypatch, by):
    """A proxy gets the whole URL, and looks the name up itself."""
    receiver.PATH = "http://db.example/api/v1/write"
    proxy = f"http://127.0.0.1:{receiver.port}"
    config = tmp_path / "agent.yaml"
    keys = f"  proxy_url: {proxy}\n" if by == "proxy_url" else "  proxy_from_environment: true\n"
    config.write_text(indented(f"- url: {receiver.PATH}\n" + keys))
    if by == "environment":
        monkeypatch.setenv("HTTP_PROXY", proxy)
    job.agent(f"--config={config}", "--gateway=off")
    wait_until(lambda: receiver.series("persia_agent_series"), "samples")
    assert receiver.errors == []


RULES = """
    - {source_labels: [__name__], regex: "my_app_.*|persia_process_up", action: keep}
    - {source_labels: [__name__, le], regex: "my_app_latency_bucket;[^+].*", action: drop}
    - {source_labels: [instance], regex: "rep_(.*)", target_label: "${1}_of", replacement: x}
    - {source_labels: [instance], regex: "(?P<kind>rep)_(.*)", target_label: "${kind}lica_$2", replacement: "$2-${kind}"}
    - {source_labels: [role], target_label: unchanged, replacement: "$1x"}
    - {source_labels: [instance, role], separator: "@", target_label: joined}
    - {source_labels: [nothing], regex: "", target_label: was_empty, replacement: "yes"}
    - {source_labels: [nothing], target_label: role, replacement: ""}
    - {source_labels: [feat], target_label: feat, action: uppercase}
    - {source_labels: [joined], target_label: low, action: lowercase}
    - {regex: "(jo)b", replacement: "my_${1}", action: labelmap}
    - {regex: "ip_addr|replica_0", action: labeldrop}
    - {source_labels: [job], regex: ".+", action: Keep}
    - {source_labels: [__name__], regex: "my_app_(loss|batches)", target_label: __name__, replacement: "renamed_$1"}
"""


class ScrapingPrometheus(PrometheusReceiver):
    def series(self):
        answer = json.loads(self.get("/api/v1/series?" + urllib.parse.urlencode({"match[]": '{job!=""}'})))
        found = {frozenset(labels.items()) for labels in answer["data"]}
        # Its own, of each target.
        return {labels for labels in found if not re.match("up$|scrape_", dict(labels)["__name__"])}


def test_rules_change_series_as_a_real_prometheus_does(receiver, job, tmp_path, started):
    """The same rules on a scrape of the agent, and on its remote write."""
    config = tmp_path / "agent.yaml"
    config.write_text(indented(f"- url: {receiver.url}\n  write_relabel_configs:{RULES}"))
    agent = job.agent(f"--config={config}", "--gateway=off")
    scrape = f"scrape_configs:\n- job_name: agent\n  scrape_interval: 500ms\n  honor_labels: true\n  static_configs: [{{targets: [{agent.address}]}}]\n"
    server = ScrapingPrometheus(tmp_path, started, scrape + "  metric_relabel_configs:" + RULES.replace("\n    ", "\n  "))
    for replica in range(3):
        worker = job.worker(role="trainer", replica=replica)
        for told in ("count my_app batches 7", "set my_app loss 0.25", "count_feat my_app misses street 3", "observe my_app latency 0.3"):
            worker.tell(told)

    def same():
        ours, theirs = set(receiver.all()), server.series()
        if ours != theirs or len(ours) < 15:
            raise ValueError(f"only ours: {sorted(map(sorted, ours - theirs))}, only theirs: {sorted(map(sorted, theirs - ours))}")
        return ours

    series = wait_until(same, "the same series")
    names = {dict(labels)["__name__"] for labels in series}
    assert {"renamed_loss", "renamed_batches", "my_app_latency_bucket", "my_app_misses"} <= names
    labels = {name for labels in series for name, _ in labels}
    assert {"rep_of", "unchanged", "role", "ip_addr", "replica_0"}.isdisjoint(labels)
    assert {"joined", "low", "was_empty", "my_jo", "replica_1"} <= labels
    assert any(("feat", "STREET") in labels for labels in series)
    assert receiver.errors == []


def test_types_and_help_texts_arrive(receiver, job, tmp_path, started):
    databases: list[Database] = [PrometheusReceiver(tmp_path, started), VictoriaMetrics(tmp_path, started)]
    urls = {db.name: db.url + "/api/v1/write" for db in databases} | {"strict": receiver.url}
    stanza = "".join(f"- {{url: '{url}', name: {name}, metadata_config: {{send_interval: 1s}}}}\n" for name, url in urls.items())
    config = tmp_path / "agent.yaml"
    config.write_text(indented(stanza))
    agent = job.agent(f"--config={config}", "--push-interval=0.3")
    worker = job.worker()
    for told in ("count my_app batches 7", "set my_app loss 0.25", "observe my_app latency 0.3"):
        worker.tell(told)
    wait_until(lambda: "my_app_latency" in receiver.metadata, "the metadata")
    shown = agent.metrics().text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", shown, re.M))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", shown, re.M))
    for name in ("my_app_batches", "my_app_loss", "my_app_latency", "persia_agent_series"):
        assert receiver.metadata[name] == (types[name], helps[name].replace("\\n", "\n").replace("\\\\", "\\"))
    assert [receiver.metadata[name][0] for name in ("my_app_batches", "my_app_loss", "my_app_latency")] == ["counter", "gauge", "histogram"]
    for name in urls:  # one that ignores metadata accepts them
        wait_until(lambda name=name: (sent(agent, "metadata_total", target=name) or 0) > 20, f"the count of {name}")
        assert sent(agent, "metadata_failed_total", target=name) == 0
    assert receiver.errors == []


def test_a_short_jobs_metadata_arrive_after_its_samples(receiver, job):
    agent = job.exec_worker(f"--remote-write={receiver.url}", "--push-interval=60")
    agent.tell("count my_app batches 41")
    assert agent.leave() == 0
    assert receiver.last("my_app_batches") == 41
    assert receiver.metadata["my_app_batches"][0] == "counter"
    assert receiver.errors == []


def test_a_target_that_refuses_metadata_gets_its_samples(receivers, job, tmp_path):
    receiver = receivers().start()
    receiver.refuses_metadata = True
    config = tmp_path / "agent.yaml"
    config.write_text(indented(f"- {{url: '{receiver.url}', name: db, metadata_config: {{send_interval: 1s}}}}\n"))
    agent = job.agent(f"--config={config}", "--push-interval=0.3")
    wait_until(lambda: (sent(agent, "metadata_failed_total", target="db") or 0) > 0, "the refusal")
    before = sent(agent, target="db")
    wait_until(lambda: sent(agent, target="db") > before, "further samples")
    assert (sent(agent, "samples_failed_total", target="db"), sent(agent, "retries_total", target="db")) == (0, 0)
    assert agent.output().count("db does not accept metadata: status 400") == 1
