"""States of a graph that changed, as the old ones and what is other: nothing else is written, or read.

    values[i, l] = values of hop l where i is among its rows, else base[before(i), l]

The base is an array (M, K+1, F), mapped; nodes from M on are in the rows of every hop. On disk it is a second name of
the old file (a hard link), beside the rows and values that differ:

    values.npy                the base              changed_rows.npy   (P,) those of hop 0, of hop 1, …
    hops.json: "layers"       N, and how many       changed.npy        (P, F)

The next change puts its rows into the same layer, so that there are never two. Above a share MOST of the base's rows
the whole is written instead. Read by rows, or by rows of one hop: O(n·log P).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError
from gamlp.storage.files import Array, is_whole_file, linked

MOST = 0.25  # of the rows of all hops: then the layer would be read for every row, and one file is better


@dataclass(frozen=True, eq=False)
class Layers:
    """An array (N, K+1, F) that is not there as one: `base` with other rows in some hops."""

    base: Array  # (M, K+1, F)
    nodes: int  # N
    rows: list[Array]  # of each hop, ascending
    values: list[Array]  # of each hop (n, F), as they are stored
    before: Array | None = None  # (N',) the rows of the base that are left; None where all have their numbers

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, K+1, F)."""
        return self.nodes, *self.base.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """As it is stored."""
        return self.base.dtype

    @property
    def nbytes(self) -> int:
        """How much is kept on disk."""
        return self.base.nbytes + sum(part.nbytes for part in (*self.rows, *self.values))

    def __getitem__(self, at: Any) -> Array:
        rows, hop = at if isinstance(at, tuple) else (at, None)
        ids = np.arange(*rows.indices(self.nodes)) if isinstance(rows, slice) else np.asarray(rows)
        return self.hop(ids, hop) if hop is not None else self.every_hop(ids)

    def hop(self, ids: Array, hop: int) -> Array:
        """Return hop l of some nodes, (n, F)."""
        place, found = self._found(ids, hop)
        result = np.empty((len(ids), self.base.shape[2]), self.dtype)
        result[found] = self.values[hop][place[found]]
        result[~found] = self.base[self._before(ids[~found]), hop]
        return result

    def whole_hop(self, hop: int) -> Array:
        """Return hop l of all nodes, (N, F) float32."""
        result = np.empty((self.nodes, self.base.shape[2]), np.float32)
        under = self.base.whole_hop(hop) if isinstance(self.base, Layers) else self.base[:, hop]
        kept = under if self.before is None else under[self.before]
        result[: len(kept)] = kept
        result[self.rows[hop]] = self.values[hop]
        return result

    def every_hop(self, ids: Array) -> Array:
        """Return all hops of some nodes, (n, K+1, F)."""
        result = np.empty((len(ids), *self.base.shape[1:]), self.dtype)
        there = ids < (len(self.base) if self.before is None else len(self.before))
        result[there] = self.base[self._before(ids[there])]
        for hop in range(result.shape[1]):
            place, found = self._found(ids, hop)
            result[found, hop] = self.values[hop][place[found]]
        return result

    def _found(self, ids: Array, hop: int) -> tuple[Array, Array]:
        """Return where each node stands among the rows of a hop, and whether it does."""
        rows = self.rows[hop]
        place = np.searchsorted(rows, ids)
        found = np.zeros(len(ids), bool)
        inside = place < len(rows)
        found[inside] = rows[place[inside]] == ids[inside]
        return place, found

    def _before(self, ids: Array) -> Array:
        return ids if self.before is None else self.before[ids]

    @property
    def touched(self) -> int:
        """How many nodes have other values in some hop."""
        return len(np.unique(np.concatenate(self.rows)))

    def over_one_file(self) -> Layers | None:
        """Return the same over the file at the bottom, in one layer; None where the whole should be written."""
        base = self.base
        merged = self if not isinstance(base, Layers) else self._merged(base)
        few = sum(map(len, merged.rows)) <= MOST * merged.base.shape[0] * merged.base.shape[1]
        return merged if few and self.before is None and is_whole_file(merged.base) else None

    def _merged(self, under: Layers) -> Layers:
        rows = [np.union1d(*pair) for pair in zip(under.rows, self.rows, strict=True)]
        return Layers(under.base, self.nodes, rows, [self.hop(ids, hop) for hop, ids in enumerate(rows)])


def write_layers(folder: Path, layers: Layers) -> dict[str, Any] | None:
    """Give the base a second name in `folder` and write the rest; return what hops.json says of it.

    None where the file system has no second names: nothing is there then.
    """
    if not linked(Path(layers.base.filename), folder / "values.npy"):  # type: ignore[attr-defined]
        return None
    return {"nodes": layers.nodes, "counts": [len(rows) for rows in layers.rows]}


def layer_arrays(layers: Layers) -> dict[str, Array]:
    """Return the files of a layer."""
    return {"changed_rows": np.concatenate(layers.rows), "changed": np.concatenate(layers.values)}


def read_layers(base: Array, rows: Array, values: Array, described: Any) -> Layers:
    """Return the array that a folder with a layer holds; refuse what cannot be one."""
    about: dict[str, Any] = described if isinstance(described, dict) else {}
    nodes, counts = about.get("nodes", 0), about.get("counts")
    right = isinstance(nodes, int) and isinstance(counts, list) and all(isinstance(one, int) for one in counts)
    if not right or counts is None or base.ndim != 3 or len(counts) != base.shape[1] or min(counts) < 0:
        raise FormatError(f"The layer is described by {str(described)[:80]}.\nPropagate again.")
    if rows.shape != (sum(counts),) or values.shape != (len(rows), base.shape[2]) or values.dtype != base.dtype:
        raise FormatError(f"The layer has {rows.shape} rows and {values.shape} values.\nPropagate again.")
    cuts = list(pairwise(np.cumsum([0, *counts]).tolist()))
    by_hop = [[part[slice(*cut)] for cut in cuts] for part in (rows, values)]
    for some in by_hop[0]:
        if len(some) and not (some[0] >= 0 and some[-1] < nodes and bool((np.diff(some) > 0).all())):
            raise FormatError("The rows of the layer are no nodes in order.\nPropagate again.")
        if len(some) - np.searchsorted(some, len(base)) != max(0, nodes - len(base)):  # added ones are in every hop
            raise FormatError(f"The layer lacks some of the nodes from {len(base):,} on.\nPropagate again.")
    return Layers(base, nodes, by_hop[0], by_hop[1])
