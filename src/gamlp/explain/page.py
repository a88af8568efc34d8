"""How a page is made: one file, complete in itself, without a single request elsewhere.

Every name that came with the data is escaped by jinja2. Style and script stand in the page; a content security policy
allows the one script by its hash and nothing from outside, so that even a name that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gamlp.explain.table import shortened
from gamlp.storage.files import replacing


def render_page(template: str, content: Mapping[str, Any], *, scripts: Sequence[str]) -> str:
    """Fill a template; `scripts` are put together into the page's one script, behind the one that switches colours."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("gamlp", "explain"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"count": lambda number: f"{number:,}", "short": shortened, "mebibytes": mebibytes}
    templates.filters |= filters
    script = "".join(templates.get_template(name).render() for name in ("theme.js.j2", *scripts))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"script": Markup(script), "script_hash": allowed}  # noqa: S704 — ours
    return templates.get_template(template).render({**content, **own})


def mebibytes(size: float | None) -> str:
    """Write a number of bytes; – where the system did not tell."""
    return "–" if size is None else f"{size / 2**20:,.0f} MiB"


def write_page(page: str, path: Path) -> Path:
    """Write a page, whole or not at all."""
    with replacing(path) as file:
        file.write(page.encode())
    return path
