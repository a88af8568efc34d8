"""JSON that gamlp wrote, checked where it is read: whoever reads on can trust every type."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gamlp.errors import FormatError

Model = TypeVar("Model", bound=BaseModel)


class Validated(BaseModel):
    """The keys that gamlp itself reads; others are left alone."""

    model_config = ConfigDict(strict=True, extra="allow")


def parsed(content: Any, kind: type[Model], path: Path) -> Model:
    """Return `content` as a model of that kind; the first thing that is wrong is named."""
    try:
        return kind.model_validate(content)
    except (ValidationError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        place = ".".join(map(str, first["loc"])) or "it"
        raise FormatError(
            f"{path} is not what gamlp wrote: {place}: {first['msg']}.\nRestore it, or train again."
        ) from error


def validated(content: Any, kind: type[Validated], path: Path) -> dict[str, Any]:
    """Return `content` as it is, if it is of that kind."""
    parsed(content, kind, path)
    return dict(content)
