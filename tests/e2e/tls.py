"""Certificates made by openssl, and a recording TLS proxy in front of a real gateway."""

import ctypes
import http.client
import http.server
import math
import ssl
import subprocess
import threading


def _openssl(*arguments, cwd):
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True, timeout=30)


def bcrypt(password, salt="$2y$05$" + "abcdefghijklmnopqrstuu"):
    """The bcrypt hash, as from htpasswd -B. Python's own `crypt` is deprecated."""
    crypt = ctypes.CDLL("libcrypt.so.1").crypt
    crypt.restype = ctypes.c_char_p
    return crypt(password.encode(), salt.encode()).decode()


class Authority:
    """A certificate authority in the existing folder `directory`."""

    def __init__(self, directory, name="test CA"):
        self.directory = directory
        self.file = directory / "ca.pem"
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        _openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", f"/CN={name}", cwd=directory)

    def issue(self, name, alternative_name):
        """The files of a new certificate and its key."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        _openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=self.directory)
        (self.directory / f"{name}.ext").write_text(f"subjectAltName={alternative_name}\n")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext"]
        _openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.pem", cwd=self.directory)
        return self.directory / f"{name}.pem", self.directory / f"{name}.key"


class Proxy:
    """Forwards each request to `gateway`, a real one on loopback, unless `refuse` returns a body for a 401, or the request has more than
    `most_bytes` (413).

    `authorizations` and `server_names` record the requests.
    """

    def __init__(self, gateway_port, certificate=None):
        self.authorizations = []
        self.server_names = []
        self.refuse = lambda headers: None
        self.most_bytes = math.inf
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                proxy.authorizations.append(self.headers.get("Authorization"))
                refusal = proxy.refuse(self.headers)
                if refusal is not None:
                    return self._answer(401, refusal.encode())
                if len(body) > proxy.most_bytes:
                    return self._answer(413, b"")
                onward = http.client.HTTPConnection("127.0.0.1", gateway_port, timeout=10)
                onward.request("PUT", self.path, body, {"Content-Type": self.headers["Content-Type"]})
                answer = onward.getresponse()
                self._answer(answer.status, answer.read())
                onward.close()

            def _answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request, address):
                # The handshake is in the connection's own thread, so that a stalled one does not delay others.
                if proxy._context is not None:
                    try:
                        request = proxy._context.wrap_socket(request, server_side=True)
                    except OSError:
                        return
                super().finish_request(request, address)

            def handle_error(self, *_):
                pass

        self._context = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
            self._context.sni_callback = lambda _, name, __: self.server_names.append(name)
        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
