"""The seam: an engine turns (adjacency, columns, Propagation) into Hops. Callers know this file alone.

Every engine passes tests/propagate/test_engine_contract.py. A new one is a file in this package and a line in
`registry.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from gamlp.graph.graph import Adjacency
from gamlp.propagate.hops import Hops
from gamlp.propagate.spec import Propagation


class Engine(ABC):
    """Where a propagation runs; `cache` is a folder in which the same propagation is found again, None = none.

    `columns` is whatever has a shape (N, F) and gives columns[first:last, block] as float32: an array, in memory or
    mapped, or one of `propagate.sources`, which make their values where they are read.
    """

    name: ClassVar[str]
    cache: Path | None
    memory: int | None  # the bytes it may use; None = as many as it takes

    @abstractmethod
    def propagate(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        """Return the hops, from the cache where they have been computed before."""

    @abstractmethod
    def propagate_to(
        self, folder: Path, adjacency: Adjacency, columns: Any, spec: Propagation, *, overwrite: bool = False
    ) -> Hops:
        """Write the hops into a folder of their own; others that are there are replaced only with `overwrite`."""
