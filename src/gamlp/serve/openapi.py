"""The API as OpenAPI 3.1 says it; the page /api is made of the same, and a test compares it with the routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gamlp
from gamlp.serve.limits import Limits
from gamlp.storage.sizes import format_size

ERROR = {"error": "IdError", "message": "There is no node 'x' among the 63,408.", "remedy": "Did you mean 'xz'?",
         "code": 404}  # fmt: skip
PREDICT = {"nodes": [{"id": "new", "x0": 0.5, "x1": -1.0}], "edges": [{"source": "new", "target": "python3"}]}
CHANGES = {
    "nodes": [{"op": "add", "id": "new", "x0": 0.5, "x1": -1.0}],
    "edges": [{"op": "add", "source": "new", "target": "python3"},
              {"op": "remove", "source": "gimp", "target": "gimp-data"}],
}  # fmt: skip
PREDICTED = {
    "nodes": [{"id": "new", "predicted": "python", "confidence": 0.91,
               "probabilities": {"python": 0.91, "libs": 0.09}, "weights": [0.2, 0.5, 0.3]}]
}  # fmt: skip
NODE = {
    "id": "gimp", "node": 7, "degree": 41, "member": "test", "label": "graphics", "predicted": "graphics",
    "confidence": 0.97, "top": {"graphics": 0.97}, "cut_at": None,
    "rings": [{"hop": 0, "weight": 0.2, "nodes": 1, "labelled": 0, "classes": {}, "support": None}],
    "probabilities": {"graphics": 0.97, "libs": 0.03},
    "neighbours": [{"id": "gimp-data", "share": 0.4, "label": None}],
}  # fmt: skip


def document(limits: Limits) -> dict[str, Any]:
    """Return the whole document; nothing of a run stands in it."""
    table = (
        "A table, as rows [{column: value}, …] or as columns {column: [values]}. Columns have the names of the run's "
        "own tables: features by name, or `features` as a list where they have none."
    )
    paths = {
        "/nodes/{id}": ask(
            "What the run says of a node: class, probabilities, weight of each hop, labels around it, neighbours that "
            "matter.",
            NODE,
            parameters=[
                parameter("id", "path", "The id, as it came in.", "string"),
                parameter("features", "query", "With true, its features too.", "boolean"),
            ],
        ),
        "/predict": send(
            f"Predict nodes that the graph does not have yet, from their features and edges; the graph stays as it is. "
            f"At most {limits.rows:,} nodes and {limits.edges:,} edges, {format_size(limits.body)} in all.",
            PREDICT,
            PREDICTED,
            {"nodes": table, "edges": f"{table} source, target and, where the graph has them, weight."},
            needed=("nodes",),
        ),
        "/changes": send(
            "Change the graph that is served, as gamlp update does: nodes and edges with a column op, which says add "
            "(the usual), change or remove. The answer comes when the changed graph is served. The run and its graph "
            "stay as they are: the server must have been started with --graph.",
            CHANGES,
            {"nodes": 63_409, "added": 1, "removed": 0, "rows_changed": 3, "version": 1},
            {"nodes": table, "edges": f"{table} source, target and, where the graph has them, weight."},
            needed=(),
        ),
        "/about": ask("What is served: run, graph, columns, classes.", {"run": "debian", "nodes": 63_408}),
        "/health": ask("Whether it answers; asks for no token.", {"status": "ready"}),
        "/metrics": ask("Counts and times, as Prometheus reads them.", "gamlp_requests_total 1.0", kind="text/plain"),
        "/openapi.json": ask("This document; asks for no token.", {"openapi": "3.1.0"}),
    }
    words = "What a run of gamlp says of the nodes of its graph, and of nodes that it does not have yet."
    scheme = {"token": {"type": "http", "scheme": "bearer", "description": "Where the server was started with one."}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "gamlp serve", "version": gamlp.__version__, "description": words},
        "paths": paths,
        "components": {"securitySchemes": scheme},
        "security": [{"token": []}, {}],
    }


def parameter(name: str, place: str, words: str, kind: str) -> dict[str, Any]:
    """Describe a part of the address."""
    made = {"name": name, "in": place, "required": place == "path", "description": words}
    return made | {"schema": {"type": kind}}


def ask(
    words: str, example: Any, *, parameters: list[dict[str, Any]] | None = None, kind: str = "application/json"
) -> dict[str, Any]:
    """Describe a GET."""
    more = {"parameters": parameters} if parameters else {}
    return {"get": {"summary": words, **more, "responses": responses(example, kind)}}


def send(words: str, body: Any, example: Any, parts: dict[str, str], *, needed: Sequence[str]) -> dict[str, Any]:
    """Describe a POST of tables."""
    kinds = [{"type": "array", "items": {"type": "object"}}, {"type": "object"}]
    properties = {name: {"description": text, "anyOf": kinds} for name, text in parts.items()}
    schema = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    content = {"application/json": {"schema": schema, "example": body}}
    request = {"required": True, "content": content}
    return {"post": {"summary": words, "requestBody": request, "responses": responses(example)}}


def responses(example: Any, kind: str = "application/json") -> dict[str, Any]:
    """Describe the answer, and what all errors look like."""
    wrong = "Anything wrong: what was found, and what to do. 503 with Retry-After where too much is asked at a time."
    return {
        "200": {"description": "The answer.", "content": {kind: {"example": example}}},
        "default": {"description": wrong, "content": {"application/json": {"example": ERROR}}},
    }
