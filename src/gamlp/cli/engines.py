"""Which engine propagates: options that propagate and train share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gamlp.errors import MissingExtraError, SettingsError, did_you_mean

ENGINES = ("memory", "disk", "ray")

Engine = Annotated[
    str | None, typer.Option("--engine", help="memory, disk or ray: by default disk where --memory is given.")
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="The Ray cluster, as HOST:6379; by default one on this machine. With --engine ray."),
]


@dataclass(frozen=True)
class Choice:
    """The memory of an engine that writes to a folder, None for the one in memory; and what writes, if not the disk."""

    memory: int | None = None
    write: Any = None


def chosen(engine: str | None, memory: str | None, address: str | None, device: str) -> Choice:
    """Refuse options that do not go together; return what they ask for."""
    from gamlp.storage.sizes import parse_size

    engine = engine or ("memory" if memory is None else "disk")
    if engine not in ENGINES:
        raise SettingsError(f"There is no engine '{engine}'.\n{did_you_mean(engine, ENGINES)}")
    if address is not None and engine != "ray":
        raise SettingsError(f"--address {address} was given for the engine '{engine}'.\nUse --engine ray.")
    if engine == "memory":
        if memory is not None:
            raise SettingsError("--memory was given for the engine in memory.\nLeave it out, or use --engine disk.")
        return Choice()
    if device != "cpu":
        raise SettingsError(f"The engine '{engine}' was asked to use '{device}'.\nIt runs on processors: cpu.")
    from gamlp.propagate.engines.ray import MEMORY

    return Choice(MEMORY if memory is None else parse_size(memory), by_ray(address) if engine == "ray" else None)


def by_ray(address: str | None) -> Any:
    """Return the engine for clusters; refuse it at once where ray is not installed."""
    from functools import partial
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise MissingExtraError("ray", "The engine for clusters")
    from gamlp.propagate.engines.ray import RayEngine

    return partial(RayEngine, address=address)
