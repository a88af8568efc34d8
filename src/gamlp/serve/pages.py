"""The two pages: one for people, one that shows the API. Complete in themselves, in the style of the reports."""

from __future__ import annotations

import json
from typing import Any

from gamlp.explain.report import render_page


def people_page() -> str:
    """Return the page that looks nodes up and tries new ones; it asks this server for everything it shows."""
    return render_page("people.html.j2", {"title": "gamlp serve"}, scripts=["people.js.j2"])


def api_page(document: dict[str, Any]) -> str:
    """Return the API to be read by people."""
    operations = [
        {"method": method.upper(), "path": path, **facts, "example": example_of(facts)}
        for path, methods in document["paths"].items()
        for method, facts in methods.items()
    ]
    content = {"title": "gamlp serve: the API", "operations": operations, "about": document["info"]["description"]}
    return render_page("api.html.j2", content, scripts=[])


def example_of(facts: dict[str, Any]) -> dict[str, str]:
    """Return the example of a request, where it has a body, and of its answers, as text."""
    body = facts.get("requestBody")
    answers = [facts["responses"][status]["content"] for status in ("200", "default")]
    texts = [next(iter(content.values()))["example"] for content in answers]
    right, wrong = (text if isinstance(text, str) else json.dumps(text, indent=1) for text in texts)
    sent = "" if body is None else json.dumps(body["content"]["application/json"]["example"], indent=1)
    return {"body": sent, "right": right, "wrong": wrong}
