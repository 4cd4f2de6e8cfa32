"""A real Alertmanager with the shipped alertmanager.yml, whose receivers are a web server that notes what it is sent."""

import http.server
import json
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/demo"))

import needs  # noqa: E402
from servers import ROOT, Server, find_program, free_port  # noqa: E402

CONFIG = ROOT / "config/prometheus/alertmanager.yml"
# Alertmanager waits before it sends, so that alerts that inhibit others arrive first.
SHORT = {"group_wait: 30s": "group_wait: 2s", "group_interval: 5m": "group_interval: 1s", "group_interval: 1m": "group_interval: 1s"}


def with_templates(program):
    """The words that start the program. Debian's build reads its templates from /usr/share/prometheus, and no flag changes that: if the
    package was unpacked elsewhere, the process gets a /usr/share of its own. This needs namespaces."""
    here = Path(program).resolve().parents[1] / "share/prometheus"
    if Path("/usr/share/prometheus/alertmanager/default.tmpl").exists() or not here.exists():
        return [program]
    mount = 'mount -t tmpfs none /usr/share && mkdir /usr/share/prometheus && mount --bind "$1" /usr/share/prometheus && shift && exec "$@"'
    return ["unshare", *needs.users(), "--mount", "sh", "-c", mount, "sh", str(here), program]


class Messages:
    """A web server on loopback. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._messages = []
        messages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with messages._lock:
                    messages._messages.append((self.path.strip("/"), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def sent(self, receiver, status="firing"):
        """Name and job of each alert that was sent to a receiver, each once, in the order of their first messages."""
        with self._lock:
            messages = [body for path, body in self._messages if path == receiver]
        alerts = [alert for body in messages for alert in body["alerts"] if alert["status"] == status]
        return list(dict.fromkeys((alert["labels"]["alertname"], alert["labels"].get("job")) for alert in alerts))

    def count(self, receiver):
        """Messages to a receiver."""
        with self._lock:
            return len([1 for path, _ in self._messages if path == receiver])


class Alertmanager(Server):
    """Runs the shipped file, with the addresses of `messages` and short waits."""

    def __init__(self, directory, messages):
        home = Path(directory) / "alertmanager"
        home.mkdir()
        text = CONFIG.read_text()
        for old, new in {"localhost:9099": messages.address, **SHORT}.items():
            assert old in text, f"nothing says {old!r}"
            text = text.replace(old, new)
        (home / "alertmanager.yml").write_text(text)
        address = f"127.0.0.1:{free_port()}"
        program = find_program("prometheus-alertmanager")
        command = [*with_templates(program), f"--config.file={home / 'alertmanager.yml'}", f"--storage.path={home / 'data'}"]
        command += [f"--web.listen-address={address}", "--cluster.listen-address=", "--log.level=warn"]
        super().__init__(command, home / "log", address, "/-/ready")
