"""What every request passes first: the name it calls us by, the token, and the net below all errors.

Without a token the server listens to this machine alone; a page of the internet must not speak for its user then. So
the name in `Host` must be one of ours (a name that somebody else's server gave out for this machine is refused), and a
body must be JSON, which a browser sends to another place only if that place agrees; we never do.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Collection

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gamlp.progress import log
from gamlp.serve.errors import of_error, refusal
from gamlp.serve.metrics import Metrics

OPEN = ("/", "/health", "/api", "/openapi.json")  # pages and a sign of life, in which nothing of the run stands
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
)


class Guard:
    """Refuses who may not ask, answers what went wrong, counts and logs."""

    def __init__(
        self, app: ASGIApp, *, token: str | None, hosts: Collection[str], metrics: Metrics, seconds: int
    ) -> None:
        self.app, self.token, self.hosts, self.metrics, self.seconds = app, token, hosts, metrics, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            refused = self.refused(Request(scope))
            await (refused or self.app)(scope, receive, sent)
        except Exception as error:
            if not status:  # nothing was sent yet
                await of_error(error, self.seconds)(scope, receive, sent)
            if status in (0, 500):
                log.exception("%s failed", spoken(scope))
        seconds = time.perf_counter() - started
        self.metrics.count(route_of(scope), status, seconds)
        log.info("%s %d, %.1f ms", spoken(scope), status, 1000 * seconds)

    def refused(self, request: Request) -> ASGIApp | None:
        """Return the answer to a request that is not let in; None where it is."""
        host = request.headers.get("host", "")
        if self.hosts and host.rpartition(":")[0].lower() not in self.hosts and host.lower() not in self.hosts:
            return refusal(421, "WrongHost", "The request is for another host than this one.")
        if self.token is not None and request.url.path not in OPEN:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode(), self.token.encode())
            if scheme.lower() != "bearer" or not right:
                return refusal(401, "NoToken", "The token is missing, or another one.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "POST" and kind != "application/json":
            return refusal(415, "WrongType", "The body is not said to be JSON.")
        return None


def route_of(scope: Scope) -> str:
    """Return the path as it is written in the routes, so that there are few of them."""
    return str(getattr(scope.get("route"), "path", "none"))


def spoken(scope: Scope) -> str:
    """Return method and path for a line of a log, as they were sent: letters and escapes, no control characters."""
    raw = scope.get("raw_path") or b""
    return f"{scope['method']} {raw.decode('ascii', 'backslashreplace')[:200]}"
