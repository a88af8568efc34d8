"""JSON that gamlp wrote, checked where it is read: whoever reads on can trust every type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from gamlp.errors import FormatError


class Validated(BaseModel):
    """The keys that gamlp itself reads; others are left alone."""

    model_config = ConfigDict(strict=True, extra="allow")


def validated(content: Any, kind: type[Validated], path: Path) -> dict[str, Any]:
    """Return `content` as it is, if it is of that kind."""
    try:
        TypeAdapter(kind).validate_python(content)
    except (ValidationError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        place = ".".join(map(str, first["loc"])) or "it"
        raise FormatError(
            f"{path} is not what gamlp wrote: {place}: {first['msg']}.\nRestore it, or train again."
        ) from error
    return dict(content)
