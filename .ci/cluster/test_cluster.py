"""config/kubernetes and config/prometheus/kubernetes_sd.yml, unchanged, on a real API server: it accepts the objects, Prometheus's service
account may read pods and nothing else, and Prometheus finds the running pods."""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/demo"))

from servers import Etcd, Process, Server, fetch, find_program, free_port, wait_until  # noqa: E402

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
}
DOCUMENTS = [document for file in sorted((ROOT / "config/kubernetes").glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())]


class ApiServer(Process):
    """A kube-apiserver with a token for its administrator. `call` raises HTTPError for an answer that is not 2xx."""

    def __init__(self, directory, etcd):
        key = directory / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (directory / "tokens.csv").write_text('admin,admin,admin,"system:masters"\n')
        self.port, self.certificate = free_port(), directory / "certificates/apiserver.crt"
        super().__init__(
            [
                ROOT / "build/kube-apiserver",
                f"--etcd-servers={etcd.url}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--cert-dir={directory / 'certificates'}",
                "--authorization-mode=RBAC",
                f"--token-auth-file={directory / 'tokens.csv'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-cluster-ip-range=10.0.0.0/24",
                # Needs a controller, which creates the default service account of each namespace.
                "--disable-admission-plugins=ServiceAccount",
            ],
            directory / "apiserver.log",
        )

    def call(self, method, path, body=None, token="admin", kind="application/json"):
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method, data=body and json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {token}")
        request.add_header("Content-Type", kind)
        context = ssl.create_default_context(cafile=self.certificate)
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="module")
def cluster():
    with tempfile.TemporaryDirectory(prefix="persia-cluster-") as directory:
        with Etcd(directory) as etcd, ApiServer(Path(directory), etcd) as server:
            wait_until(lambda: server.call("GET", "/api/v1/namespaces/default"), "the API server", 120)
            server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
            for document in DOCUMENTS:
                if document["kind"] in PATHS:
                    path = PATHS[document["kind"]].format(document["metadata"].get("namespace", "default"))
                    server.call("POST", path + "?fieldValidation=Strict", document)
            yield server


def test_objects_of_all_kinds_but_the_operators_are_created(cluster):
    assert {document["kind"] for document in DOCUMENTS} - set(PATHS) == {"PodMonitor"}


def token(cluster):
    path = "/api/v1/namespaces/monitoring/serviceaccounts/prometheus/token"
    return cluster.call("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]


@pytest.mark.parametrize("refused", ["/api/v1/secrets", "/api/v1/nodes", "/api/v1/namespaces/default/pods/a/log"])
def test_the_service_account_reads_pods_alone(cluster, refused):
    assert cluster.call("GET", "/api/v1/pods", token=token(cluster))["kind"] == "PodList"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        cluster.call("GET", refused, token=token(cluster))


def create_pods(cluster):
    """A running and an ended pod of each template, which the controllers of a cluster would create. Returns the targets of running ones."""
    targets = set()
    for document in DOCUMENTS:
        template = document.get("spec", {}).get("template")
        for phase in ("Running", "Succeeded") if template else ():
            labels, name = template["metadata"]["labels"], f"{document['metadata']['name']}-{phase.lower()}"
            cluster.call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "labels": labels}, "spec": template["spec"]})
            address = f"127.0.9.{len(targets) + 1}"
            status = {"status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]}}
            cluster.call("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", status, kind="application/merge-patch+json")
            if phase == "Running":
                job, port = {"agent": ("persia_agents", 19091), "gateway": ("persia_gateways", 9091)}[labels["persia-metrics"]]
                targets.add((job, f"http://{address}:{port}/metrics", name, "default"))
    return targets


class PrometheusInPod(Server):
    """A Prometheus that sees its service account's files where a pod has them."""

    def __init__(self, directory, cluster):
        files = directory / "account"
        files.mkdir()
        (files / "token").write_text(token(cluster))
        (files / "ca.crt").write_bytes(cluster.certificate.read_bytes())
        address = f"127.0.0.1:{free_port()}"
        # The folder may not exist on this machine, so its parent is replaced.
        script = (
            f"mkdir -p /run/secrets && mount -t tmpfs tmpfs /run/secrets && mkdir -p {ACCOUNT} && cp {files}/* {ACCOUNT} && "
            f"KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT={cluster.port} exec {ROOT / 'build/peers/prometheus'} "
            f"--config.file={ROOT / 'config/prometheus/kubernetes_sd.yml'} --storage.tsdb.path={directory / 'tsdb'} --web.listen-address={address}"
        )
        users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        super().__init__([find_program("unshare"), *users, "--mount", "sh", "-c", script], directory / "prometheus.log", address, "/-/ready")

    def targets(self):
        active = json.loads(fetch(f"{self.url}/api/v1/targets?state=active")[1])["data"]["activeTargets"]
        found = ((each["scrapePool"], each["scrapeUrl"], each["labels"]["instance"], each["labels"].get("namespace")) for each in active)
        return {each for each in found if each[0] != "prometheus"}


def test_prometheus_finds_the_running_pods(cluster, tmp_path):
    wanted = create_pods(cluster)
    assert {job for job, *_ in wanted} == {"persia_agents", "persia_gateways"}
    with PrometheusInPod(tmp_path, cluster) as prometheus:
        wait_until(lambda: prometheus.targets() == wanted, f"the targets {wanted}", 60)
