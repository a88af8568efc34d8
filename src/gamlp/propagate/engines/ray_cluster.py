"""A Ray cluster: reach one or start one here, and see how many blocks it can compute at once.

A block needs `memory` bytes wherever it runs, so a machine takes as many as fit in its memory, and no more than it has
processors; the processors that are left become threads of the blocks:

    at once = min(Σ_machines min(⌊memory of the machine / memory⌋, processors), cache lines that the columns fill)
    threads = ⌊processors of the smallest such machine / blocks on it⌋
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from gamlp.errors import ClusterError, MissingExtraError, SettingsError
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import available

ENVIRONMENT = {  # what Ray is told where the user tells it nothing
    "RAY_USAGE_STATS_ENABLED": "0",  # no statistics to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # its workers are the work: at Ray's 15 they would stand back behind everything else
}


@contextmanager
def cluster(address: str | None = None) -> Iterator[Any]:
    """Yield ray, connected: as it is already, else to `address`, else to $RAY_ADDRESS, else to one started here.

    Until it is left, what is printed goes to standard error: Ray says at any moment what it has lost, and on
    standard output, which belongs to results.
    """
    with _told_to_ray():
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "The engine for clusters") from None
    if ray.is_initialized():
        yield ray
        return
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    here = {"num_cpus": available(), "include_dashboard": False} if place == "local" else {}
    with redirect_stdout(sys.stderr):
        try:
            with _told_to_ray():
                ray.init(address=place, log_to_driver=False, logging_level="error", **here)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise ClusterError(
                f"No Ray cluster was reached at {place!r}: {str(error).splitlines()[0] if str(error) else error!r}\n"
                "Start one with `ray start --head`, give its --address, or leave --address out to use this machine "
                "alone."
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _told_to_ray() -> Iterator[None]:
    """Set ENVIRONMENT where the user set nothing, for as long as Ray is loaded or its processes start."""
    ours = {name: value for name, value in ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@dataclass(frozen=True)
class Machine:
    """What Ray says a machine has."""

    processors: int
    memory: int


@dataclass(frozen=True)
class Slots:
    """How many blocks run at once, and with how many threads and bytes each."""

    count: int
    threads: int
    memory: int


def machines(ray: Any) -> list[Machine]:
    """Return the machines that are alive."""
    found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [Machine(int(one.get("CPU", 0)), int(one.get("memory", 0))) for one in found]


def slots(there: Sequence[Machine], *, memory: int, lines: int) -> Slots:
    """Share out the machines; `lines` is the number of cache lines that a row of features fills."""
    able = [one for one in there if one.memory >= memory and one.processors > 0]
    if not able:
        most = max((one.memory for one in there), default=0)
        raise SettingsError(
            f"A block may use {format_size(memory)}, and none of the {len(there)} machines of the cluster has so "
            f"much for Ray: the largest has {format_size(most)}.\n"
            "Give less --memory, or start Ray with more: ray start --memory."
        )
    count = min(sum(min(one.memory // memory, one.processors) for one in able), lines)
    on_each = -(-count // len(able))
    return Slots(count, max(1, min(one.processors for one in able) // on_each), memory)
