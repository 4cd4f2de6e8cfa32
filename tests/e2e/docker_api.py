"""A server with the part of a swarm manager's Docker API that Prometheus queries: /services, /tasks, /networks and /nodes."""

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "1.41"
NETWORKS = [
    {"Id": "net_persia", "Name": "training_persia", "Scope": "swarm", "Driver": "overlay", "Ingress": False, "Internal": False, "Labels": {}},
    {"Id": "net_ingress", "Name": "ingress", "Scope": "swarm", "Driver": "overlay", "Ingress": True, "Internal": False, "Labels": {}},
]
NODES = [
    {
        "ID": "node_a",
        "Spec": {"Role": "manager", "Availability": "active", "Labels": {}},
        "Description": {"Hostname": "host_a", "Platform": {"Architecture": "x86_64", "OS": "linux"}, "Engine": {"EngineVersion": "20.10.24"}},
        "Status": {"State": "ready", "Addr": "127.0.0.1"},
    }
]


def service(name, labels, published=None, namespace="training"):
    """A service; `published` is a port that the swarm publishes."""
    ports = [{"Protocol": "tcp", "TargetPort": published, "PublishedPort": published, "PublishMode": "ingress"}] if published else []
    mode = {"Global": {}} if "agent" in name else {"Replicated": {"Replicas": 1}}
    labels = {"com.docker.stack.namespace": namespace, **labels}
    return {"ID": name, "Spec": {"Name": name, "Labels": labels, "Mode": mode}, "Endpoint": {"Ports": ports}}


def task(of, address, slot=1, desired="running", state="running"):
    """A task of a service, in the network `training_persia` and, as every published service is, in `ingress`."""
    attached = [("net_persia", "training_persia", address), ("net_ingress", "ingress", "127.0.0.77")]
    return {
        "ID": f"{of}.{slot}.{desired}.{state}",
        "ServiceID": of,
        "NodeID": "node_a",
        "Slot": slot,
        "Spec": {"ContainerSpec": {"Labels": {}}},
        "DesiredState": desired,
        "Status": {"State": state, "ContainerStatus": {"ContainerID": f"container_{of}"}, "PortStatus": {}},
        "NetworksAttachments": [{"Network": {"ID": id_, "Spec": {"Name": name}}, "Addresses": [f"{at}/24"]} for id_, name, at in attached],
    }


def stack(compose, name):
    """Services, tasks and networks of a compose file (compose_file.load) that is deployed as the stack `name`: one task a service, each
    with an address of loopback."""
    keys = {key for settings in compose["services"].values() for key in settings["networks"]}
    networks = {key: {**NETWORKS[0], "Id": f"net_{key}", "Name": f"{name}_{key}"} for key in keys}
    services, tasks = [], []
    for number, (key, settings) in enumerate(compose["services"].items(), 1):
        services.append(service(f"{name}_{key}", settings.get("deploy", {}).get("labels", {}), namespace=name))
        tasks.append(task(f"{name}_{key}", None))
        tasks[-1]["NetworksAttachments"] = [
            {"Network": {"ID": networks[at]["Id"], "Spec": {"Name": networks[at]["Name"]}}, "Addresses": [f"127.0.1.{number}/24"]}
            for at in settings["networks"]
        ]
    return services, tasks, list(networks.values())


class DockerApi:
    """A context manager. `asked` has the requested paths."""

    def __init__(self, services, tasks, networks=NETWORKS):
        self.asked = set()
        answers = {"services": services, "tasks": tasks, "networks": networks, "nodes": NODES}
        api = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, body):
                self.send_response(200)
                self.send_header("API-Version", VERSION)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_HEAD(self):  # /_ping, by which a client learns the version
                self.answer(b"OK")

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                api.asked.add(url.path)
                filters = json.loads(urllib.parse.parse_qs(url.query).get("filters", ["{}"])[0])
                found = answers.get(url.path.removeprefix(f"/v{VERSION}/"))
                if found is None:
                    self.send_error(404)
                    return
                if url.path.endswith("/tasks") and "desired-state" in filters:
                    found = [one for one in found if one["DesiredState"] in filters["desired-state"]]
                self.answer(json.dumps(found).encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
