"""Sparse features, (N, vocabulary), as columns: as they are, or along their main directions where they are too many.

Up to LARGEST numbers of N × F they are written out. More are rotated onto 256 singular directions, from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import ConfigDict

from gamlp.graph.encode.kinds import Column
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

LARGEST = 2**28
DIRECTIONS = 256
CHUNK = 2**23  # numbers


@dataclass(frozen=True, eq=False)
class Bag(Column):
    """Features of a sparse matrix by their names; `learned` (features, F) turns them, where they are too many."""

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)
    kind = "bag"
    plain = True
    vocabulary: tuple[str, ...]
    learned: Array | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """One a feature, or a direction."""
        if self.learned is None:
            return self.vocabulary
        return tuple(f"{self.name}[{at}]" for at in range(self.learned.shape[1]))

    @property
    def words(self) -> str:
        """What it was taken for."""
        turned = "" if self.learned is None else f" → {len(self.names)} columns"
        return f"{len(self.vocabulary):,} sparse features{turned}"

    @property
    def array(self) -> Array | None:
        """The directions."""
        return self.learned

    def data(self) -> dict[str, Any]:
        """Return it for JSON, but for the array."""
        return {"kind": self.kind, "name": self.name, "vocabulary": list(self.vocabulary)}

    def chunks(self, matrix: Any) -> Iterator[Array]:
        """Yield the features of a matrix (N, vocabulary), some rows at a time."""
        for first, last in ranges(matrix.shape[0], max(1, CHUNK // max(1, len(self.names)))):
            rows = matrix[first:last]
            yield np.asarray(rows.toarray() if self.learned is None else rows @ self.learned, np.float32)


def fit_bag(name: str, names: tuple[str, ...], matrix: Any) -> Bag:
    """Return features as they are, or, where they would be too many numbers, their main directions."""
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if matrix.shape[0] * matrix.shape[1] <= LARGEST:
        return Bag(name, names)
    with threadpool_limits(1):  # the same bits on any number of cores
        vectors = randomized_svd(matrix, min(DIRECTIONS, *matrix.shape), n_iter=4, random_state=0)[2]
    return Bag(name, names, np.ascontiguousarray(vectors.T, dtype=np.float32))
