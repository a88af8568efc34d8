"""Combiners and methods of other packages, by entry points: what they register is found without editing anything here.

    [project.entry-points."gamlp.combiners"]          in the pyproject.toml of one's own package
    last-two = "my_package:LastTwo"

    [project.entry-points."gamlp.methods"]
    centroid = "my_package:Centroid"                  a Method, or a Base: settings that make a network on hops

They are imported when they are named, not before. A name of ours cannot be taken.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from gamlp.errors import SettingsError
from gamlp.progress import log


def installed(kind: str, *, but: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return what other packages register, by name: where it is ("module:name"), and in which package."""
    found: dict[str, tuple[str, str]] = {}
    for point in entry_points(group=f"gamlp.{kind}"):
        package = point.dist.name if point.dist is not None else point.value.partition(":")[0]
        if point.name in but:
            log.warning(
                "%s registers '%s' among %s, which gamlp has already: it is left out.", package, point.name, kind
            )
        else:
            found[point.name] = (point.value, package)
    return found


def place_of(kind: Any, name: str, known: dict[str, Any]) -> str:
    """Return where a class is, as registries keep it; a name that is taken by another is refused."""
    place = f"{kind.__module__}:{kind.__qualname__}"
    if known.get(name, place) != place:
        raise SettingsError(f"'{name}' is registered already, as {known[name]}.\nChoose another name.")
    return place


def imported(place: str, name: str) -> Any:
    """Import what was registered under a name."""
    try:
        return resolve_name(place)
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"'{name}' is registered as {place}, which cannot be imported ({error}).\n"
            "Install the package that registers it anew, or remove it."
        ) from error
