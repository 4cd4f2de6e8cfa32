"""The text format, and ways to expose a registry, with the names of prometheus_client.exposition.

If the job's agent exports this process's metrics (`persia_metrics.exporting()`), the functions that start a server or push to a gateway
start and push nothing: one line on stderr says that the agent does it. A registry other than the default one is copied to the agent
from then on. Without an agent, they do what prometheus_client's do.
"""

from __future__ import annotations

import base64
import gzip
import os
import socket
import ssl
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlparse
from urllib.request import BaseHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from .export import agent_exports
from .openmetrics import exposition as openmetrics
from .registry import REGISTRY
from .utils import floatToGoString

__all__ = [
    "CONTENT_TYPE_LATEST",
    "MetricsHandler",
    "basic_auth_handler",
    "choose_encoder",
    "delete_from_gateway",
    "generate_latest",
    "instance_ip_grouping_key",
    "make_asgi_app",
    "make_wsgi_app",
    "passthrough_redirect_handler",
    "push_to_gateway",
    "pushadd_to_gateway",
    "start_http_server",
    "start_wsgi_server",
    "tls_auth_handler",
    "write_to_textfile",
]

CONTENT_TYPE_LATEST = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text format."""

# What OpenMetrics has and the text format has not: families of their own.
_OWN_FAMILIES = ("_created", "_gcount", "_gsum")
_TEXT_TYPES = {"info": "gauge", "stateset": "gauge", "gaugehistogram": "histogram", "unknown": "untyped"}


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join('{}="{}"'.format(name, _escaped(value).replace('"', r"\"")) for name, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else ""


def _line(sample: Any) -> str:
    timestamp = "" if sample.timestamp is None else f" {int(float(sample.timestamp) * 1000):d}"
    return f"{sample.name}{_labels(sample.labels)} {floatToGoString(sample.value)}{timestamp}\n"


def _header(name: str, documentation: str, kind: str) -> str:
    return f"# HELP {name} {_escaped(documentation)}\n# TYPE {name} {kind}\n"


def _text_of(metric: Any) -> List[str]:
    suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
    lines = [_header(metric.name + suffix, metric.documentation, _TEXT_TYPES.get(metric.type, metric.type))]
    own: Dict[str, List[str]] = {}
    for sample in metric.samples:
        apart = next((end for end in _OWN_FAMILIES if sample.name == metric.name + end), None)
        (lines if apart is None else own.setdefault(apart, [])).append(_line(sample))
    for end, samples in sorted(own.items()):
        lines += [_header(metric.name + end, metric.documentation, "gauge"), *samples]
    return lines


def generate_latest(registry: Any = REGISTRY) -> bytes:
    """A registry's metrics in the text format. An exception of a collector, or of a sample that is none, names the family."""
    output: List[str] = []
    for metric in registry.collect():
        try:
            output += _text_of(metric)
        except Exception as exception:
            exception.args = (exception.args or ("",)) + (metric,)
            raise
    return "".join(output).encode()


def choose_encoder(accept_header: Optional[str]) -> Tuple[Callable[[Any], bytes], str]:
    """The format for an Accept header: OpenMetrics if it is accepted, else the text format. Its function and its content type."""
    kinds = [accepted.partition(";")[0].strip() for accepted in (accept_header or "").split(",")]
    if "application/openmetrics-text" in kinds:
        return openmetrics.generate_latest, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest, CONTENT_TYPE_LATEST


def gzip_accepted(accept_encoding_header: Optional[str]) -> bool:
    """Whether an Accept-Encoding header has gzip."""
    return any(part.partition(";")[0].strip().lower() == "gzip" for part in (accept_encoding_header or "").split(","))


def _bake_output(
    registry: Any, accept: Optional[str], accept_encoding: Optional[str], params: Mapping[str, Sequence[str]], disable_compression: bool
) -> Tuple[str, List[Tuple[str, str]], bytes]:
    """Status, headers and body of the answer to a scrape. `params` are those of the query, of which `name[]` selects samples."""
    encoder, content_type = choose_encoder(accept)
    if "name[]" in params:
        registry = registry.restricted_registry(params["name[]"])
    output = encoder(registry)
    headers = [("Content-Type", content_type)]
    if not disable_compression and gzip_accepted(accept_encoding):
        output = gzip.compress(output)
        headers.append(("Content-Encoding", "gzip"))
    return "200 OK", headers, output


_StartResponse = Callable[[str, List[Tuple[str, str]]], Any]
_WsgiApp = Callable[[Dict[str, Any], _StartResponse], Iterable[bytes]]


def make_wsgi_app(registry: Any = REGISTRY, disable_compression: bool = False) -> _WsgiApp:
    """A WSGI application that serves a registry, with or without an agent."""

    def app(environ: Dict[str, Any], start_response: _StartResponse) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD", "GET")
        if method == "OPTIONS":
            status, headers, output = "200 OK", [("Allow", "OPTIONS,GET")], b""
        elif method != "GET":
            status, headers = "405 Method Not Allowed", [("Allow", "OPTIONS,GET")]
            output = f"# HTTP {status}: {method}; use OPTIONS or GET\n".encode()
        elif environ["PATH_INFO"] == "/favicon.ico":
            status, headers, output = "200 OK", [], b""
        else:
            accept, encoding = environ.get("HTTP_ACCEPT"), environ.get("HTTP_ACCEPT_ENCODING")
            params = parse_qs(environ.get("QUERY_STRING", ""))
            status, headers, output = _bake_output(registry, accept, encoding, params, disable_compression)
        start_response(status, headers)
        return [output]

    return app


class MetricsHandler(BaseHTTPRequestHandler):
    """A request handler of http.server that serves `registry`."""

    registry: Any = REGISTRY
    """The registry that is served."""

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        """Answers a scrape."""
        accept, encoding = self.headers.get("Accept"), self.headers.get("Accept-Encoding")
        status, headers, output = _bake_output(self.registry, accept, encoding, parse_qs(urlparse(self.path).query), False)
        self.send_response(int(status.split()[0]))
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(output)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

    @classmethod
    def factory(cls, registry: Any) -> type:
        """A handler class that serves another registry."""
        return type(cls.__name__, (cls,), {"registry": registry})


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class ThreadingWSGIServer(ThreadingMixIn, WSGIServer):
    """A server with a thread for each request."""

    daemon_threads = True


class _AgentServes:
    """Stands in for the server that was not started."""

    def shutdown(self) -> None:
        pass

    def server_close(self) -> None:
        pass


def _tls_context(certfile: str, keyfile: Optional[str], cafile: Optional[str], capath: Optional[str], protocol: int, required: bool) -> Any:
    context = ssl.SSLContext(protocol)
    if cafile is not None or capath is not None:
        context.load_verify_locations(cafile, capath)
    elif required:
        context.load_default_certs(purpose=ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_NONE
    context.load_cert_chain(certfile=certfile, keyfile=keyfile)
    return context


def start_wsgi_server(
    port: int, addr: str = "0.0.0.0", registry: Any = REGISTRY, certfile: Optional[str] = None, keyfile: Optional[str] = None,
    client_cafile: Optional[str] = None, client_capath: Optional[str] = None, protocol: int = ssl.PROTOCOL_TLS_SERVER,
    client_auth_required: bool = False,
) -> Tuple[Any, threading.Thread]:
    """Serves a registry by a thread, with TLS if there is a certificate. Returns the server and the thread.

    If the agent exports this process's metrics, starts no server. Then `shutdown` and `server_close` of the result do nothing.
    """
    if agent_exports(f"start_http_server({port})", registry):
        nothing = threading.Thread(target=int, daemon=True)
        nothing.start()
        return _AgentServes(), nothing
    family, _, _, _, address = socket.getaddrinfo(addr, port, type=socket.SOCK_STREAM)[0]
    server_class = type("Server", (ThreadingWSGIServer,), {"address_family": family})
    server: Any = make_server(str(address[0]), port, make_wsgi_app(registry), server_class, handler_class=_SilentHandler)
    if certfile and keyfile:
        context = _tls_context(certfile, keyfile, client_cafile, client_capath, protocol, client_auth_required)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    return server, thread


start_http_server = start_wsgi_server


def write_to_textfile(path: str, registry: Any, tmpdir: Optional[str] = None) -> None:
    """Writes a registry to a file, which is never seen half written: for node_exporter, whose files end in .prom.

    `tmpdir`: the folder of the file while it is written, on the same filesystem.
    """
    temporary = f"{os.path.join(tmpdir, os.path.basename(path)) if tmpdir else path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(temporary, "wb") as file:
            file.write(generate_latest(registry))
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


_Headers = Sequence[Tuple[str, str]]
_Handler = Callable[[str, str, Optional[float], _Headers, bytes], Callable[[], None]]


class _RedirectHandler(HTTPRedirectHandler):
    """Follows redirects with the method and the body of the request."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request:
        method = req.get_method()
        if not (code in (301, 302, 303, 307) and method in ("GET", "HEAD") or code in (301, 302, 303) and method in ("POST", "PUT")):
            raise HTTPError(req.full_url, code, msg, headers, fp)
        url = newurl.replace(" ", "%20")
        return Request(url, req.data, dict(req.headers), req.origin_req_host, unverifiable=True, method=method)


def _request(url: str, method: str, timeout: Optional[float], headers: _Headers, data: bytes, base: Any) -> Callable[[], None]:
    def handle() -> None:
        request = Request(url, data=data, headers=dict(headers), method=method)
        response = build_opener(base).open(request, timeout=timeout)
        if response.code >= 400:
            raise OSError(f"error talking to pushgateway: {response.code} {response.msg}")

    return handle


def default_handler(url: str, method: str, timeout: Optional[float], headers: _Headers, data: bytes) -> Callable[[], None]:
    """Makes the function that sends a request over HTTP or HTTPS."""
    return _request(url, method, timeout, headers, data, HTTPHandler)


def passthrough_redirect_handler(url: str, method: str, timeout: Optional[float], headers: _Headers, data: bytes) -> Callable[[], None]:
    """As default_handler, and follows redirects with the method and the body: only for a gateway that you trust."""
    return _request(url, method, timeout, headers, data, _RedirectHandler)


def basic_auth_handler(
    url: str, method: str, timeout: Optional[float], headers: _Headers, data: bytes, username: Optional[str] = None,
    password: Optional[str] = None,
) -> Callable[[], None]:
    """As default_handler, with basic authentication if there are a user name and a password."""
    more = list(headers)
    if username is not None and password is not None:
        more.append(("Authorization", "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()))
    return default_handler(url, method, timeout, more, data)


def tls_auth_handler(
    url: str, method: str, timeout: Optional[float], headers: _Headers, data: bytes, certfile: str, keyfile: str,
    cafile: Optional[str] = None, protocol: int = ssl.PROTOCOL_TLS_CLIENT, insecure_skip_verify: bool = False,
) -> Callable[[], None]:
    """As default_handler, with a client certificate."""
    context = ssl.SSLContext(protocol)
    if insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cafile is not None:
        context.load_verify_locations(cafile)
    else:
        context.load_default_certs()
    context.load_cert_chain(certfile=certfile, keyfile=keyfile)
    handler: BaseHandler = HTTPSHandler(context=context)
    return _request(url, method, timeout, headers, data, handler)


def push_to_gateway(
    gateway: str, job: str, registry: Any, grouping_key: Optional[Dict[str, Any]] = None, timeout: Optional[float] = 30,
    handler: _Handler = default_handler,
) -> None:
    """Replaces the group of a PushGateway by a registry's metrics. If the agent exports this process's metrics, pushes nothing.

    `grouping_key`: the group's labels besides `job`. OSError and HTTPError: the gateway cannot be reached, or refuses.
    """
    if not agent_exports("push_to_gateway()", registry):
        _use_gateway("PUT", gateway, job, registry, grouping_key, timeout, handler)


def pushadd_to_gateway(
    gateway: str, job: str, registry: Any, grouping_key: Optional[Dict[str, Any]] = None, timeout: Optional[float] = 30,
    handler: _Handler = default_handler,
) -> None:
    """As push_to_gateway, but keeps metrics of other names in the group."""
    if not agent_exports("pushadd_to_gateway()", registry):
        _use_gateway("POST", gateway, job, registry, grouping_key, timeout, handler)


def delete_from_gateway(
    gateway: str, job: str, grouping_key: Optional[Dict[str, Any]] = None, timeout: Optional[float] = 30,
    handler: _Handler = default_handler,
) -> None:
    """Deletes a group of a PushGateway. If the agent exports this process's metrics, deletes nothing."""
    if not agent_exports("delete_from_gateway()", None):
        _use_gateway("DELETE", gateway, job, None, grouping_key, timeout, handler)


def _use_gateway(
    method: str, gateway: str, job: str, registry: Any, grouping_key: Optional[Dict[str, Any]], timeout: Optional[float], handler: _Handler
) -> None:
    if urlparse(gateway).scheme not in ("http", "https"):
        gateway = f"http://{gateway}"
    parts = [("job", job), *sorted((str(name), str(value)) for name, value in (grouping_key or {}).items())]
    url = gateway.rstrip("/") + "/metrics" + "".join("/{}/{}".format(*_escape_grouping_key(*part)) for part in parts)
    data = b"" if method == "DELETE" else generate_latest(REGISTRY if registry is None else registry)
    handler(url=url, method=method, timeout=timeout, headers=[("Content-Type", CONTENT_TYPE_LATEST)], data=data)()  # type: ignore[call-arg]


def _escape_grouping_key(name: str, value: str) -> Tuple[str, str]:
    if value == "":
        return name + "@base64", "="
    if "/" in value:
        return name + "@base64", base64.urlsafe_b64encode(value.encode()).decode()
    return name, quote(value, safe="")


def instance_ip_grouping_key() -> Dict[str, Any]:
    """A grouping key with this host's address as `instance`."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        probe.connect(("localhost", 0))
        return {"instance": probe.getsockname()[0]}


from .asgi import make_asgi_app  # noqa: E402 - it imports this module
