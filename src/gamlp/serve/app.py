"""The routes: HTTP in front of a `Service`, whose versions follow each other.

    GET  /            the page for people            GET  /health       whether it answers
    GET  /about       what is served                 GET  /metrics      Prometheus text
    GET  /nodes/{id}  what the run says of a node    GET  /api          the API as a page, and /openapi.json
    POST /predict     new nodes, by tables           POST /changes      a batch of changes to the graph

Every answer but the pages and /metrics is JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from gamlp.errors import IdError, StorageError
from gamlp.serve.body import read_body, read_tables
from gamlp.serve.errors import answer, refusal
from gamlp.serve.guard import Guard
from gamlp.serve.limits import Gate, Limits
from gamlp.serve.metrics import TYPE, Metrics
from gamlp.serve.openapi import document
from gamlp.serve.pages import api_page, people_page
from gamlp.serve.service import Service
from gamlp.serve.versions import Versions

Handler = Callable[[Request], Awaitable[Response]]
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Api:
    """The handlers, around the newest version of a service."""

    def __init__(self, versions: Versions, limits: Limits) -> None:
        self.versions, self.limits, self.gate = versions, limits, Gate(limits)
        self.changing = Gate(Limits(waiting=1, seconds=10**6))  # one batch at a time, however long it takes
        self.metrics = Metrics(lambda: self.gate.inside, lambda: self.service.run.graph.nodes)
        self.document = document(limits)

    async def node(self, request: Request) -> Response:
        """Answer GET /nodes/{id}."""
        wanted = request.query_params.get("features", "") in ("1", "true")
        try:
            async with self.gate.enter() as deadline:
                work = partial(self.service.node, request.path_params["id"], features=wanted)
                return JSONResponse(await self.gate.run(work, deadline))
        except IdError as error:
            return answer(404, "IdError", str(error))

    async def predict(self, request: Request) -> Response:
        """Answer POST /predict."""
        most = {"nodes": self.limits.rows, "edges": self.limits.edges}
        async with self.gate.enter() as deadline:
            body = await read_body(request.stream(), self.limits, deadline)

            def work() -> tuple[bytes, int]:
                found = self.service.predict(read_tables(body, most, needed=("nodes",)))
                return bytes(JSONResponse(found).body), len(found["nodes"])

            content, count = await self.gate.run(work, deadline)
        self.metrics.predicted.inc(count)
        return Response(content, media_type="application/json")

    async def changes(self, request: Request) -> Response:
        """Answer POST /changes: when the changed graph is served."""
        most = {"nodes": self.limits.rows, "edges": self.limits.edges}
        async with self.changing.enter() as no_deadline:
            async with self.gate.enter() as deadline:
                body = await read_body(request.stream(), self.limits, deadline)
            try:
                done = await self.changing.run(lambda: self.versions.change(read_tables(body, most)), no_deadline)
                return JSONResponse(done)
            except StorageError as error:  # another process works on the directory, or has
                return answer(409, "StorageError", str(error))

    @property
    def service(self) -> Service:
        """The newest version."""
        return self.versions.service

    async def about(self, request: Request) -> Response:
        """Answer GET /about."""
        return JSONResponse(self.service.about() | {"version": self.versions.count})

    async def health(self, request: Request) -> Response:
        """Answer GET /health."""
        return JSONResponse({"status": "ready"})

    async def counts(self, request: Request) -> Response:
        """Answer GET /metrics."""
        return Response(self.metrics.text(), headers={"content-type": TYPE})

    async def openapi(self, request: Request) -> Response:
        """Answer GET /openapi.json."""
        return JSONResponse(self.document)


async def no_such_route(request: Request, error: Exception) -> Response:
    """Answer what no route takes."""
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, "RequestError", f"{error.detail}: {request.method} here.")


def page(text: str) -> Handler:
    """Return the handler of a page that is the same for everybody."""

    async def shown(request: Request) -> Response:
        return HTMLResponse(text)

    return shown


def make_app(
    versions: Versions, limits: Limits | None = None, *, token: str | None = None, hosts: Collection[str] = LOCAL
) -> Starlette:
    """Return the app; `hosts` are the names that it may be called by, none = any."""
    api = Api(versions, limits or Limits())
    routes: dict[str, tuple[str, Any]] = {
        "/": ("GET", page(people_page())), "/about": ("GET", api.about), "/nodes/{id:path}": ("GET", api.node),
        "/predict": ("POST", api.predict), "/changes": ("POST", api.changes),
        "/health": ("GET", api.health), "/metrics": ("GET", api.counts),
        "/api": ("GET", page(api_page(api.document))), "/openapi.json": ("GET", api.openapi),
    }  # fmt: skip
    shared: dict[str, Any] = {"token": token, "hosts": hosts, "metrics": api.metrics, "seconds": api.limits.seconds}

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        api.gate.close()
        api.changing.close()

    return Starlette(
        routes=[Route(path, handler, methods=[method]) for path, (method, handler) in routes.items()],
        middleware=[Middleware(Guard, **shared)],
        exception_handlers={HTTPException: no_such_route},
        lifespan=lifespan,
    )
