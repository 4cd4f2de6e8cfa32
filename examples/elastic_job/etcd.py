"""A client of etcd 3.4 and later, over the JSON form of its API: keys, leases, compare-and-put, watches.

Standard library only. Thread safety: any method from any thread; each call opens a connection.
"""

import base64
import http.client
import json
import time
import urllib.error
import urllib.request

_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class EtcdError(Exception):
    """etcd does not answer, or gives an unexpected answer."""


class Etcd:
    def __init__(self, address, timeout):
        """`address`: host:port. `timeout`: the seconds for which a call is retried before it raises EtcdError."""
        self.address, self._timeout = address, timeout

    def get(self, prefix):
        """(name, value, revision of the last change) of the keys under a prefix, the oldest first; and the store's revision."""
        answer = self._call("kv/range", {**_range(prefix), "sort_target": "CREATE"})
        keys = answer.get("kvs", [])
        return [(_text(kv["key"]), json.loads(_text(kv["value"])), kv["mod_revision"]) for kv in keys], int(answer["header"]["revision"])

    def put(self, key, value, lease):
        """Sets a key that expires with its lease. False: the lease has expired."""
        return self._call("kv/put", {**_pair(key, value), "lease": lease}, "lease not found") is not None

    def put_if(self, key, value, unchanged_since, while_there):
        """Sets a key if its last change was at that revision (0: it does not exist) and the key `while_there` exists."""
        compare = [
            {"key": _bytes(key), "target": "MOD", "mod_revision": unchanged_since},
            {"key": _bytes(while_there), "target": "VERSION", "result": "GREATER", "version": 0},
        ]
        self._call("kv/txn", {"compare": compare, "success": [{"request_put": _pair(key, value)}]})

    def lease(self, seconds):
        return self._call("lease/grant", {"TTL": seconds})["ID"]

    def keep_alive(self, lease):
        """Renews a lease. False: it has expired."""
        return "TTL" in self._call("lease/keepalive", {"ID": lease})["result"]

    def changes(self, prefix, revision):
        """Yields at each change under the prefix from that revision on. Ends with the connection, or after a long time without a change."""
        request = {"create_request": {**_range(prefix), "start_revision": revision}}
        try:
            with _open(f"http://{self.address}/v3/watch", json.dumps(request).encode(), timeout=self._timeout) as answer:
                yield from (None for line in answer if "events" in json.loads(line)["result"])
        except (OSError, http.client.HTTPException, ValueError):
            return

    def _call(self, path, body, expected_refusal=None):
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with _open(f"http://{self.address}/v3/{path}", json.dumps(body).encode(), timeout=self._timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                reason = f"{error.code}: {error.read().decode(errors='replace').strip()}"
                if expected_refusal and expected_refusal in reason:
                    return None
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = getattr(error, "reason", error)
            if time.monotonic() >= deadline:
                hint = "check that it runs, and that this is its client address"
                raise EtcdError(f"etcd at {self.address} has not answered {path} for {self._timeout:g} s ({reason}): {hint}")
            time.sleep(0.2)


def _bytes(text):
    return base64.b64encode(text.encode()).decode()


def _text(data):
    return base64.b64decode(data).decode()


def _pair(key, value):
    return {"key": _bytes(key), "value": _bytes(json.dumps(value))}


def _range(prefix):
    return {"key": _bytes(prefix), "range_end": _bytes(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
