"""Features for a graph that came without any: where a node stands among the others.

FastRP's idea (Chen et al., CIKM 2019): random vectors, propagated. Nodes that reach the same nodes get similar vectors.

    Z_0 = R ∈ {−1, 1}^d, from a hash of the node's id, divided by √degree: hubs say little
    Z_k = D⁻¹A Z_{k−1}, each row to length 1
    X   = Z_1 + … + Z_32, and log(1 + degree) beside it: (N, d + 1)
          or near and far steps apart: Z_1 + … + Z_4 | Z_5 + … + Z_32 | log(1 + degree): (N, 2d + 1)

FastRP adds powers up to the fourth and brings rows to length 1 in the end. Here they are after every step, so that a
node hears each neighbour alike, and there can be more steps. How many was chosen on the validation nodes of Cora,
CiteSeer, PubMed and Photo (benchmarks/structure_steps.py): sparse graphs gain up to 48, dense ones lose from
24 on; two sums of near and far steps side by side, and sums that fade out, were no better.

The id is the seed: a node has the same random vector in every graph that has it, so what was learned on one graph is of
use for the same graph with more nodes or edges. For a graph of other nodes, only the degree and the labels are.
Cost: 32 hops of d columns; N·d numbers a few times over, which are files within a memory limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gamlp.graph.build.ids import hashes_of
from gamlp.graph.graph import Adjacency
from gamlp.graph.store import write_by_columns
from gamlp.progress import progress
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.sources import ColumnSource
from gamlp.propagate.spec import Propagation
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array, is_whole_file, read_array
from gamlp.storage.scratch import removed_with, scratch_folder
from gamlp.storage.threads import ranges

DIMENSION = 256
WIDTH = DIMENSION + 1
STEPS, NEAR = 32, 4
ROWS = 2**12  # at a time


def structure_features(engine: Engine, adjacency: Adjacency, names: Array | None, *, apart: bool = False) -> Array:
    """Return (N, d + 1) float32, with near and far steps `apart` (N, 2d + 1).

    Within the engine's memory limit it is a mapped file, which goes when nobody reads it.
    """
    engine, degree = engine.transient(), np.diff(adjacency.indptr).astype(np.float32)
    spec, unit = Propagation(1, Normalization(0.0, self_loops=False), keep="last"), Scaling("unit")
    state: Any = RandomSigns(np.arange(adjacency.nodes) if names is None else names, degree)
    total = stored(beginning(degree, DIMENSION * (1 + apart)), engine, len(degree))
    with progress("features from the structure", total=STEPS) as advance:
        for step in range(STEPS):
            hops = engine.propagate(adjacency, state, spec)
            state = unit.seen(matrix(hops))
            first = DIMENSION if apart and step >= NEAR else 0
            total = stored(added(total, state, first), engine, len(degree))
            advance()
    return total


def width_of_structure(*, apart: bool) -> int:
    """Return how many columns `structure_features` makes."""
    return DIMENSION * (1 + apart) + 1


def beginning(degree: Array, width: int) -> Iterator[Array]:
    """Yield the rows before the first step: zeros, and log(1 + degree)."""
    for first, last in ranges(len(degree), ROWS):
        rows = np.zeros((last - first, width + 1), np.float32)
        rows[:, width] = np.log1p(degree[first:last])
        yield rows


def added(total: Array, state: Any, column: int) -> Iterator[Array]:
    """Yield the rows of the sum so far with one more step in the columns from `column` on."""
    reader = ArrayReader(total)
    for first, last in ranges(len(total), ROWS):
        rows = np.ascontiguousarray(reader.block(first, last, slice(0, total.shape[1])))
        rows[:, column : column + DIMENSION] += state[first:last]
        yield rows
    reader.close()


def stored(chunks: Iterator[Array], engine: Engine, nodes: int) -> Array:
    """Return the rows as one array, or as a temporary file where the engine has a memory limit."""
    if engine.memory is None:
        return np.concatenate(list(chunks))
    folder = scratch_folder("gamlp-structure")
    write_by_columns(folder / "features.npy", chunks, nodes)
    features = read_array(folder / "features.npy", memory_map=True)
    removed_with(features, folder)
    return features


def matrix(hops: Hops) -> Array:
    """Return the one hop that is kept, (N, d), as the file that it is, where it is one."""
    values: Any = hops.values
    if not is_whole_file(values):
        return np.asarray(values[:, 0])
    shape = (len(values), values.shape[2])
    return np.memmap(values.filename, values.dtype, "r", values.offset, shape)


class RandomSigns(ColumnSource):
    """R (N, DIMENSION): signs that follow from nothing but the ids, whole numbers or strings."""

    def __init__(self, ids: Array, degree: Array) -> None:
        self.shape = (len(ids), DIMENSION)
        self.seeds = hashes_of(ids if ids.dtype.kind in "iu" else pa.array(ids.tolist(), pa.string()))
        self.scale = 1 / np.sqrt(np.maximum(degree, 1))
        self.content = ["random signs", self.seeds, self.scale]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        words = self.seeds[rows, None] ^ np.arange(1, DIMENSION // 64 + 1, dtype=np.uint64)
        mixed = hashes_of(words.ravel().view(np.int64)).reshape(words.shape)
        signs = 2 * np.unpackbits(mixed.view(np.uint8), axis=1)[:, columns].astype(np.float32) - 1
        return np.asarray(signs * self.scale[rows, None])
