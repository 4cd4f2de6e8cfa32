"""An ASGI application that serves a registry, with the name of prometheus_client.asgi."""

from __future__ import annotations

from typing import Any, Awaitable, Callable
from urllib.parse import parse_qs

from .exposition import _bake_output
from .registry import REGISTRY


def make_asgi_app(registry: Any = REGISTRY, disable_compression: bool = False) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Makes the application, which serves with or without an agent."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope.get("type") == "http"

        def header(name: bytes) -> str:
            return ",".join(value.decode() for key, value in scope.get("headers") if key.lower() == name)

        query = scope.get("query_string", b"")
        params = parse_qs(query.decode() if isinstance(query, bytes) else query)
        status, headers, output = _bake_output(registry, header(b"accept"), header(b"accept-encoding"), params, disable_compression)
        if (await receive()).get("type") == "http.request":
            encoded = [(name.encode(), value.encode()) for name, value in headers]
            await send({"type": "http.response.start", "status": int(status.split()[0]), "headers": encoded})
            await send({"type": "http.response.body", "body": output})

    return app
