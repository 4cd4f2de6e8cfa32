"""config/kubernetes: names that find each other, permissions, and settings that the real agent understands. .ci/kubernetes checks the fields
and their values."""

import re
import subprocess

import pytest
import yaml
from conftest import AGENT, EMBEDDING_JOB, environment
from servers import ROOT

FOLDER = ROOT / "config/kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))

DOCUMENTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in FILES
    for document in yaml.safe_load_all(file.read_text())
]
PODS = [param for param in DOCUMENTS if "template" in param.values[0].get("spec", {})]


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
    help_text = subprocess.run([AGENT, mode, "--help-all"], capture_output=True, text=True, timeout=10).stdout
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
    deployment, claim, service = (param.values[0] for param in DOCUMENTS if param.id.startswith("gateway-"))
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in containers(deployment)[0]["ports"]}
    assert deployment["spec"]["replicas"] == 1 and deployment["spec"]["strategy"] == {"type": "Recreate"}
    address = f"{service['metadata']['name']}:{port['port']}"
    assert {plain_environment(param.values[0])["PERSIA_METRICS_GATEWAY_ADDR"] for param in agents()} == {address}
    # Its groups are in the claimed volume, which its user may write to.
    (volume,) = pod_of(deployment)["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    (mount,) = containers(deployment)[0]["volumeMounts"]
    assert containers(deployment)[0]["args"][0].startswith(f"--persistence.file={mount['mountPath']}/")
    assert pod_of(deployment)["securityContext"]["fsGroup"] == pod_of(deployment)["securityContext"]["runAsGroup"]


def specs_of(kind):
    """Specification by name of each object of a kind."""
    documents = [param.values[0] for param in DOCUMENTS]
    return {document["metadata"]["name"]: document["spec"] for document in documents if document["kind"] == kind}


def test_policies_select_the_gateway_and_agents_without_a_job():
    """A policy for the pods of a job would forbid the job's own connections."""
    policies = specs_of("NetworkPolicy")
    templates = {param.id: param.values[0]["spec"]["template"] for param in PODS}
    for spec in policies.values():
        wanted = spec["podSelector"]["matchLabels"]
        selected = {name: template for name, template in templates.items() if wanted.items() <= template["metadata"]["labels"].items()}
        assert selected and not any(name.endswith("-Job") for name in selected)
        (rule,) = spec["ingress"]
        for template in selected.values():
            names = {port["name"] for container in template["spec"]["containers"] for port in container["ports"]}
            assert {port["port"] for port in rule["ports"]} == names
    # Agents may push.
    (rule,) = policies["metrics-gateway"]["ingress"]
    allowed = rule["from"][0]["podSelector"]["matchLabels"].items()
    for name, template in templates.items():
        assert (allowed <= template["metadata"]["labels"].items()) == (name != "gateway-Deployment"), name


def test_the_service_account_of_prometheus_may_read_pods():
    account, role, binding = (param.values[0] for param in DOCUMENTS if param.id.startswith("prometheus-rbac-"))
    bound = {key: account["metadata"][key] for key in ("name", "namespace")}
    assert binding["subjects"] == [{"kind": "ServiceAccount", **bound}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    watched = {discovery["role"] for each in scrapes("kubernetes_sd.yml") for discovery in each.get("kubernetes_sd_configs", [])}
    assert role["rules"] == [{"apiGroups": [""], "resources": [f"{what}s" for what in watched], "verbs": ["get", "list", "watch"]}]


def scrapes(file):
    return yaml.safe_load((ROOT / "config/prometheus" / file).read_text())["scrape_configs"]


def test_pod_monitors_scrape_as_the_file_for_prometheus_does():
    monitors = specs_of("PodMonitor")
    assert set(monitors) == {"persia-gateways", "persia-agents"}
    for name, spec in monitors.items():
        job = name.replace("-", "_")
        (scrape,) = [each for each in scrapes("kubernetes_sd.yml") if each["job_name"] == job]
        (selector,) = scrape["kubernetes_sd_configs"][0]["selectors"]
        ((label, value),) = spec["selector"]["matchLabels"].items()
        assert f"{label}={value}" == selector["label"]
        (endpoint,) = spec["podMetricsEndpoints"]
        assert endpoint["honorLabels"] is scrape["honor_labels"] is True
        assert {"targetLabel": "job", "replacement": job} in endpoint["relabelings"]
        (rule,), (other,) = endpoint["metricRelabelings"], scrape["metric_relabel_configs"]
        assert rule == {"sourceLabels": other["source_labels"], "regex": other["regex"], "action": other["action"]}
        # The port, by its name, of every pod that is selected.
        selected = [param.values[0] for param in PODS if param.values[0]["spec"]["template"]["metadata"]["labels"].get(label) == value]
        ports = [[port["name"] for each in containers(document) for port in each.get("ports", [])] for document in selected]
        assert ports and all(each == [endpoint["port"]] for each in ports)


def test_the_rules_for_the_operator_are_those_of_prometheus():
    folder = ROOT / "config/prometheus/rules"

    def printed(*optional):
        return subprocess.run([FOLDER / "prometheus-rule.sh", *optional], capture_output=True, text=True, timeout=10)

    def groups(paths):
        return [group for path in paths for group in yaml.safe_load(path.read_text())["groups"]]

    main = groups(sorted(folder.glob("*.yml")))
    assert yaml.safe_load(printed().stdout)["spec"] == {"groups": main}
    names = sorted(path.stem for path in folder.glob("optional/*.yml"))
    assert yaml.safe_load(printed(*names).stdout)["spec"] == {"groups": main + groups(sorted(folder.glob("optional/*.yml")))}
    refused = printed("machines")
    assert (refused.returncode, refused.stdout) == (2, "") and refused.stderr.endswith(f"\"machines\" ({', '.join(names)})\n")


def test_readme_names_every_file_and_the_packages_of_the_image():
    text = (FOLDER / "README.md").read_text()
    assert all(f"`{file.name}`" in text for file in FOLDER.iterdir() if file.name != "README.md")
    dockerfile = (ROOT / "agent/Dockerfile").read_text()
    install = re.search(r"apt-get install -y --no-install-recommends (.*?) &&", dockerfile, re.S)[1]
    assert install.split() == re.search(r"apt-get install -y --no-install-recommends (.*?) &&", text, re.S)[1].split()
