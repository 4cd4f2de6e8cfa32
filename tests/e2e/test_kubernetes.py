"""config/kubernetes: what can be said of the manifests without a cluster. Fields that Kubernetes knows, names that find each other, who may
do what, and settings that the real agent understands. No API server has seen them."""

import re
import subprocess

import pytest
import yaml
from conftest import AGENT, EMBEDDING_JOB, environment
from servers import ROOT

FOLDER = ROOT / "config/kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))

# The fields that the manifests use, as the API's reference has them: what is not here is a slip, or is to be looked up and added.
POD = {"metadata", "spec"}
FIELDS = {
    "metadata": {"name", "labels"},
    "Job": {"backoffLimit", "completionMode", "completions", "parallelism", "template"},
    "DaemonSet": {"selector", "template"},
    "Deployment": {"replicas", "strategy", "selector", "template"},
    "Service": {"selector", "ports"},
    "pod": {"automountServiceAccountToken", "containers", "initContainers", "restartPolicy", "securityContext", "shareProcessNamespace",
            "terminationGracePeriodSeconds", "volumes"},  # fmt: skip
    "container": {"name", "image", "command", "args", "env", "ports", "livenessProbe", "readinessProbe", "resources", "restartPolicy",
                  "securityContext", "volumeMounts"},  # fmt: skip
    "pod security": {"fsGroup", "runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile"},
    "container security": {"allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem"},
    "probe": {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold", "initialDelaySeconds"},
    "emptyDir": {"medium", "sizeLimit"},
    "hostPath": {"path", "type"},
}
VERSIONS = {"Job": "batch/v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1", "Service": "v1"}


class UniqueKeys(yaml.SafeLoader):
    """A key that is there twice is an error: Kubernetes refuses it, and PyYAML takes the last one."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"line {node.start_mark.line + 1}: {keys}"
        return super().construct_mapping(node, deep)


DOCUMENTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in FILES
    for document in yaml.load_all(file.read_text(), UniqueKeys)
]
PODS = [param for param in DOCUMENTS if param.values[0]["kind"] != "Service"]


def pod_of(document):
    return document["spec"]["template"]["spec"]


def containers(document):
    pod = pod_of(document)
    return pod.get("initContainers", []) + pod["containers"]


def memory(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", text).groups()
    return int(number) * {"Mi": 1, "Gi": 1024}[unit]


def cpus(text):
    return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)


def only(have, known, where):
    assert set(have) <= FIELDS[known], f"{where}: {set(have) - FIELDS[known]}"


def test_there_is_an_example_of_each_way():
    assert {file.stem for file in FILES} == {"job-sidecar", "job-exec", "daemonset", "gateway"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_fields_are_known_and_names_are_allowed(document):
    kind = document["kind"]
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert document["apiVersion"] == VERSIONS[kind]
    only(document["metadata"], "metadata", kind)
    only(document["spec"], kind, kind)
    names = [document["metadata"]["name"]]
    if kind != "Service":
        assert set(document["spec"]["template"]) == POD
        pod = pod_of(document)
        only(pod, "pod", kind)
        only(pod["securityContext"], "pod security", kind)
        names += [each["name"] for each in [*containers(document), *pod.get("volumes", [])]]
        for container in containers(document):
            only(container, "container", container["name"])
            only(container["securityContext"], "container security", container["name"])
            for kind_of_probe in ("livenessProbe", "readinessProbe"):
                only(container.get(kind_of_probe, {}), "probe", container["name"])
        for volume in pod.get("volumes", []):
            (kind_of_volume,) = set(volume) - {"name"}
            only(volume[kind_of_volume], kind_of_volume, volume["name"])
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names), names


@pytest.mark.parametrize("document", PODS)
def test_names_find_each_other(document):
    spec, pod = document["spec"], pod_of(document)
    labels = spec["template"]["metadata"]["labels"]
    if "selector" in spec:
        assert spec["selector"]["matchLabels"].items() <= labels.items()
    names = [container["name"] for container in containers(document)]
    assert len(set(names)) == len(names)
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    used = {mount["name"] for container in containers(document) for mount in container.get("volumeMounts", [])}
    assert used == volumes
    for container in containers(document):
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for name in ("livenessProbe", "readinessProbe"):
            if name in container:
                assert container[name]["httpGet"]["port"] in ports
                assert container[name]["httpGet"]["path"] == {"livenessProbe": "/-/healthy", "readinessProbe": "/-/ready"}[name]
        env = [variable["name"] for variable in container.get("env", [])]
        assert len(set(env)) == len(env)
        assert all(isinstance(variable["value"], str) for variable in container.get("env", []) if "value" in variable)
        assert all(isinstance(word, str) for word in container.get("command", []))


@pytest.mark.parametrize("document", PODS)
def test_containers_may_do_no_more_than_they_must(document):
    pod = pod_of(document)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(document):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert re.fullmatch(r"\S+:v?\d+\.\d+\.\d+", container["image"])
        resources = container["resources"]
        assert memory(resources["requests"]["memory"]) <= memory(resources["limits"]["memory"])
        assert cpus(resources["requests"]["cpu"]) <= cpus(resources["limits"].get("cpu", "1000"))


@pytest.mark.parametrize("document", PODS)
def test_volumes_have_a_limit_that_the_memory_has_room_for(document):
    for volume in pod_of(document).get("volumes", []):
        if "emptyDir" in volume:
            limit = memory(volume["emptyDir"]["sizeLimit"])
            if volume["emptyDir"].get("medium") == "Memory":
                users = [each for each in containers(document) if volume["name"] in {mount["name"] for mount in each["volumeMounts"]}]
                assert all(limit < memory(each["resources"]["limits"]["memory"]) for each in users)


def agents():
    for param in PODS:
        for container in containers(param.values[0]):
            if container.get("command", [""])[0] == "persia-metrics-agent":
                yield pytest.param(container, id=param.id)


def plain_environment(container):
    """Its variables, with values in place of the fields that Kubernetes would look up."""
    looked_up = {"status.hostIP": "192.0.2.7", "metadata.annotations['batch.kubernetes.io/job-completion-index']": "1"}
    found = {}
    for variable in container["env"]:
        found[variable["name"]] = variable["value"] if "value" in variable else looked_up[variable["valueFrom"]["fieldRef"]["fieldPath"]]
    return found


@pytest.mark.parametrize("container", list(agents()))
def test_the_agent_understands_what_it_is_told(container):
    mode, *flags = container["command"][1:]
    assert mode in ("run", "exec")
    if mode == "exec":
        flags = flags[: flags.index("--")]
    told = plain_environment(container)
    result = subprocess.run([AGENT, "check-config", *flags], env=environment(**told), capture_output=True, text=True, timeout=10)
    assert result.returncode == 0, result.stderr
    for value in told.values():
        assert value in result.stdout
    help_text = subprocess.run([AGENT, mode, "--help"], capture_output=True, text=True, timeout=10).stdout
    assert all("$" + name in help_text for name in told), "a variable that nobody reads"


@pytest.mark.parametrize("container", list(agents()))
def test_probes_reach_the_pages_and_stop_no_training(container):
    listen = plain_environment(container)["PERSIA_METRICS_LISTEN_ADDR"]
    assert [f":{port['containerPort']}" for port in container["ports"]] == [listen], "the kubelet asks the pod's address"
    assert "startupProbe" not in container
    assert "livenessProbe" not in container


def test_sidecar_is_a_native_one_and_shares_segments_with_the_trainer():
    (job,) = [param.values[0] for param in PODS if param.id == "job-sidecar-Job"]
    (sidecar,), (trainer,) = pod_of(job)["initContainers"], pod_of(job)["containers"]
    assert sidecar["restartPolicy"] == "Always" and pod_of(job)["restartPolicy"] == "Never"
    assert "--exit-when-idle" not in " ".join(sidecar["command"]), "it would be started again"
    for name in ("PERSIA_JOB_NAME", "PERSIA_METRICS_DIR"):
        assert plain_environment(sidecar)[name] == plain_environment(trainer)[name]
    (mounted,) = sidecar["volumeMounts"]
    assert mounted in trainer["volumeMounts"]
    assert plain_environment(sidecar)["PERSIA_METRICS_DIR"].startswith(mounted["mountPath"] + "/"), "a directory inside it"
    (volume,) = [each for each in pod_of(job)["volumes"] if each["name"] == mounted["name"]]
    assert volume["emptyDir"]["medium"] == "Memory"


def test_commands_of_the_demo_job_are_understood(segments):
    """Whole, with a duration of a second, as the trainer is run."""
    for param in PODS:
        for container in containers(param.values[0]):
            if "embedding_job" in container.get("command", []):
                words = container["command"][container["command"].index("embedding_job") + 1 :]
                words = ["1" if word == "600" else word for word in words]
                env = environment(PERSIA_METRICS_DIR=str(segments / "job"))
                result = subprocess.run([EMBEDDING_JOB, *words], env=env, capture_output=True, text=True, timeout=60)
                assert result.returncode == 0, result.stderr


def test_gateway_is_where_the_agents_push():
    deployment, service = (param.values[0] for param in DOCUMENTS if param.id.startswith("gateway-"))
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in containers(deployment)[0]["ports"]}
    assert deployment["spec"]["replicas"] == 1 and deployment["spec"]["strategy"] == {"type": "Recreate"}
    address = f"{service['metadata']['name']}:{port['port']}"
    assert {plain_environment(param.values[0])["PERSIA_METRICS_GATEWAY_ADDR"] for param in agents()} == {address}


def test_readme_names_every_file_and_the_packages_of_the_image():
    text = (FOLDER / "README.md").read_text()
    assert all(f"`{file.name}`" in text for file in FILES)
    dockerfile = (ROOT / "agent/Dockerfile").read_text()
    install = re.search(r"apt-get install -y --no-install-recommends (.*?) &&", dockerfile, re.S)[1]
    assert install.split() == re.search(r"apt-get install -y --no-install-recommends (.*?) &&", text, re.S)[1].split()
