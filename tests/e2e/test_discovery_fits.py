"""config/prometheus selects the names, labels, ports and networks of the compose, stack and Kubernetes files, read from both
sides."""

import re

import compose_file
import pytest
import yaml
from docker_api import DockerApi, stack
from servers import ROOT, wait_until
from shipped_prometheus import CONFIG, ShippedPrometheus

pytestmark = pytest.mark.static

KUBERNETES = ROOT / "config/kubernetes"
KINDS = {"persia_gateways": "gateway", "persia_agents": "agent"}


def scrape(file, job):
    (found,) = [each for each in yaml.safe_load((CONFIG / file).read_text())["scrape_configs"] if each["job_name"] == job]
    return found


def ports(compose):
    """(kind, port) by service, of each service whose first process is an agent, and of the gateway to which these push."""
    found = {}
    for name, service in compose["services"].items():
        if {"exec", "run"} & set(service.get("command", [])[:2]):
            environment = service["environment"]
            found[name] = ("agent", int(environment.get("PERSIA_METRICS_LISTEN_ADDR", "127.0.0.1:19091").rpartition(":")[2]))
            gateway, port = environment["PERSIA_METRICS_GATEWAY_ADDR"].split(":")
            found[gateway] = ("gateway", int(port))
    assert {kind for kind, _ in found.values()} == set(KINDS.values())
    return found


def services_named(compose, name):
    """The services that have the name, in a network of Prometheus."""
    reached = set(compose["services"]["prometheus"]["networks"])
    return {
        service
        for service, settings in compose["services"].items()
        for network, attachment in settings["networks"].items()
        if network in reached and name in (service, *(attachment or {}).get("aliases", []))
    }


@pytest.mark.parametrize(
    ("file", "compose_name", "job"),
    [
        ("prometheus.yml", "docker-compose.yml", "persia_gateways"),
        ("dns_sd.yml", "config/compose/swarm.yml", "persia_gateways"),
        ("dns_sd.yml", "config/compose/swarm.yml", "persia_agents"),
    ],
)
def test_names_in_dns_are_those_of_the_services(file, compose_name, job):
    compose = compose_file.load(compose_name)
    (discovery,) = scrape(file, job)["dns_sd_configs"]
    wanted = {name: port for name, (kind, port) in ports(compose).items() if kind == KINDS[job]}
    found = set().union(*(services_named(compose, name.removeprefix("tasks.")) for name in discovery["names"]))
    assert found == set(wanted), f"{file} asks for {discovery['names']}"
    assert {discovery["port"]} == set(wanted.values())


def test_prometheus_of_the_stack_reads_a_shipped_file_and_all_rules():
    for files, discovery in (
        (["config/compose/swarm.yml"], "dns_sd.yml"),
        (["config/compose/swarm.yml", "config/compose/swarm-socket.yml"], "dockerswarm_sd.yml"),
    ):
        configs, mounted = {}, {}
        for name in files:
            content = yaml.safe_load((ROOT / name).read_text())
            configs |= content["configs"]
            prometheus = content["services"]["prometheus"]
            mounted |= {each["target"]: each["source"] for each in prometheus.get("configs", [])}
        # `docker stack deploy` reads relative paths from the folder of the first file.
        read = {target: ((ROOT / files[0]).parent / configs[source]["file"]).resolve() for target, source in mounted.items()}
        rules = {f"/etc/prometheus/rules/{path.name}": path for path in (CONFIG / "rules").glob("*.yml")}
        assert read == {"/etc/prometheus/prometheus.yml": CONFIG / discovery, **rules}


def test_tasks_of_the_stack_are_found_by_the_labels_of_their_services(tmp_path, started):
    """A real Prometheus and the answers that a manager gives for the stack."""
    compose = compose_file.load("config/compose/swarm.yml")
    services, tasks, networks = stack(compose, "training")
    with DockerApi(services, tasks, networks) as docker:
        prometheus = ShippedPrometheus(tmp_path, "dockerswarm_sd.yml", {"unix:///var/run/docker.sock": docker.url})
        started(prometheus)
        address = {task["ServiceID"]: task["NetworksAttachments"][0]["Addresses"][0].partition("/")[0] for task in tasks}
        for job, kind in KINDS.items():
            wanted = {f"http://{address[f'training_{name}']}:{port}/metrics" for name, (of, port) in ports(compose).items() if of == kind}
            wait_until(lambda job=job, wanted=wanted: {each["url"] for each in prometheus.targets(job)} == wanted, f"the targets {wanted}")


def pods():
    """(kind, labels, port) of each pod of the manifests with an agent or a gateway, by the commands of its containers."""
    for file in sorted(KUBERNETES.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            template = document.get("spec", {}).get("template")
            for container in [*template["spec"].get("initContainers", []), *template["spec"]["containers"]] if template else []:
                agent = any(each["name"] == "PERSIA_METRICS_LISTEN_ADDR" for each in container.get("env", []))
                if agent or container["image"].startswith("prom/pushgateway:"):
                    (port,) = container["ports"]
                    yield "agent" if agent else "gateway", template["metadata"]["labels"], port["containerPort"]


@pytest.mark.parametrize("job", KINDS)
def test_pods_have_the_labels_and_ports_that_prometheus_asks_for(job):
    config = scrape("kubernetes_sd.yml", job)
    ((selector,),) = (discovery["selectors"] for discovery in config["kubernetes_sd_configs"])
    label, _, value = selector["label"].partition("=")
    (port,) = {int(found[1]) for rule in config["relabel_configs"] if (found := re.fullmatch(r"\$1:(\d+)", rule.get("replacement", "")))}
    selected = [kind for kind, labels, _ in pods() if labels.get(label) == value]
    assert selected == [kind for kind, *_ in pods() if kind == KINDS[job]] != [], f"{job} selects {selector['label']}"
    assert {served for kind, _, served in pods() if kind == KINDS[job]} == {port}
