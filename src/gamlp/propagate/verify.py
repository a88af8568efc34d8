"""GAMLP_VERIFY=1: sampled values of every propagation are computed again in float64, by scipy, and compared.

Of each propagation — features, labels, corrections, on every engine, from the cache too — the first, the last and two
more columns go through all hops once more, and 256 rows of them are compared with what the engine gave. A value may
differ by what rounding can do and no more (Higham 2002, section 3.1): with u the unit roundoff, d_i the degree,

    |x̃ − x|^(l) ≤ e^(l),    e^(l) = Â e^(l−1) + ((d_i + 16) u₃₂ + 3 u_s) Â (a^(l−1) + e^(l−1)),    a^(l) = Â a^(l−1)

where a^(0) = |X|, e^(0) = u_s |X|, u₃₂ = 2⁻²⁴, and u_s is 0 where states are float32, 2⁻¹¹ where they are float16; its
smallest steps add 2⁻²⁴ to what is stored and 2⁻³⁸ max a to each state. With a restart a is that of α Âa + (1 − α)|X|;
α ≤ 1 and clipping move no two values further apart. Scaled and rotated features are made where they are read, and
the order of sums depends on the width there: to e^(0) come 64 u₃₂ of the column's largest.

Cost: K sparse products of twelve float64 columns, outside any memory limit. It is for a first run on a new machine, an
engine of one's own, and doubts; without the variable nothing of this is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.errors import VerificationError
from gamlp.progress import log
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.scaling import ScaledFeatures
from gamlp.propagate.spec import Job
from gamlp.storage.files import Array

ROWS, COLUMNS = 256, 4
SINGLE, HALF = 2.0**-24, 2.0**-11  # unit roundoff
OPERATIONS = 16  # of a hop beside the sum: scales, restart, storing


@dataclass(frozen=True)
class Operator:
    """Â in float64, as sums of scipy's own and not by our kernels."""

    matrix: Any  # A, (N, N)
    left: Array  # D^(r−1) (N, 1)
    right: Array  # D^(−r) (N, 1)
    degree: Array  # entries that are added up for each node (N, 1)
    self_loops: bool

    @classmethod
    def of(cls, adjacency: Any, normalization: Normalization) -> Operator:
        """Build it from the adjacency."""
        from scipy.sparse import csr_array

        ones = np.ones(adjacency.entries) if adjacency.weights is None else np.asarray(adjacency.weights, np.float64)
        matrix = csr_array(
            (ones, np.asarray(adjacency.indices), np.asarray(adjacency.indptr)), shape=(adjacency.nodes,) * 2
        )
        sums = matrix.sum(axis=1).reshape(-1, 1) + normalization.self_loops
        safe = np.where(sums > 0, sums, 1)
        left, right = (np.where(sums > 0, safe**p, 0) for p in (normalization.r - 1, -normalization.r))
        return cls(matrix, left, right, np.diff(adjacency.indptr)[:, None] + 1.0, normalization.self_loops)

    def __call__(self, x: Array) -> Array:
        """Return Âx, (N, w)."""
        scaled = self.right * x
        return np.asarray(self.left * (self.matrix @ scaled + (scaled if self.self_loops else 0)))


def verify(job: Job, hops: Hops, engine: str) -> None:
    """Refuse hops of which a sampled value is further from float64 than rounding explains."""
    random = np.random.default_rng([job.adjacency.nodes, job.width, job.spec.hops])
    inner = random.permutation(np.arange(1, max(1, job.width - 1)))[: COLUMNS - 2]
    columns = np.unique([0, job.width - 1, *inner])
    places = np.sort(random.permutation(job.rows)[:ROWS])
    nodes = places if job.spec.rows is None else np.asarray(job.spec.rows)[places]
    kept = {hop: place for place, hop in enumerate(job.spec.kept_hops)}
    for hop, (expected, allowed) in enumerate(recomputed(job, columns)):
        if hop in kept and len(places):
            found = np.asarray(hops.values[places, kept[hop]][:, columns], np.float64)
            compare(found, expected[nodes], allowed[nodes], engine, hop, nodes, columns)
    log.info("verified: %d rows of %d columns over %d hops on %s", len(places), len(columns), job.spec.hops, engine)


def recomputed(job: Job, columns: Array) -> Any:
    """Yield for hops 0 … K the values of some columns in float64 and how far rounding may lead from them, (N, w)."""
    spec, nodes = job.spec, job.adjacency.nodes
    operator, restart = Operator.of(job.adjacency, spec.normalization), spec.restart
    stored = HALF if spec.storage == "float16" else 0.0
    steps = 2.0**-24 if stored else 0.0  # the smallest of float16
    given = [np.asarray(job.columns[0:nodes, at : at + 1], np.float32) for at in columns]  # as an engine reads them
    start = np.concatenate(given, axis=1).astype(np.float64)
    x, size = start, np.abs(start)
    made = 64 * SINGLE * size.max(axis=0) if isinstance(job.columns, ScaledFeatures) else 0.0
    error = stored * size + made
    yield x, error + steps
    for _ in range(spec.hops):
        moved = operator(np.concatenate([x, size, error], axis=1))
        x, size, before = np.split(moved, 3, axis=1)
        fine = 2.0**-38 * size.max(axis=0) if stored else 0.0
        if restart is not None:
            x = restart.alpha * x + (1 - restart.alpha) * start
            size = restart.alpha * size + (1 - restart.alpha) * np.abs(start)
            x = np.clip(x, restart.low, restart.high)
        error = before + ((operator.degree + OPERATIONS) * SINGLE + 3 * stored) * (size + before) + fine
        if restart is not None and restart.fixed is not None:
            x[restart.fixed], size[restart.fixed] = start[restart.fixed], np.abs(start[restart.fixed])
            error[restart.fixed] = (OPERATIONS * SINGLE + 3 * stored) * size[restart.fixed] + fine
        yield x, error + stored * size + steps


def compare(found: Array, expected: Array, allowed: Array, engine: str, hop: int, nodes: Array, columns: Array) -> None:
    """Refuse the value that is furthest beyond what is allowed; all (n, w)."""
    beyond = ~(np.abs(found - expected) <= allowed)  # NaN is beyond too
    if not beyond.any():
        return
    excess = np.where(beyond, np.nan_to_num(np.abs(found - expected), nan=np.inf), -1)
    row, column = np.unravel_index(int(excess.argmax()), excess.shape)
    raise VerificationError(
        f"The engine '{engine}' gave {found[row, column]:.9g} for hop {hop} of node {nodes[row]:,}, column "
        f"{columns[column]:,}; computed again in float64 it is {expected[row, column]:.9g}, and rounding explains a "
        f"difference of {allowed[row, column]:.2g}. {int(beyond.sum()):,} of {beyond.size:,} sampled values differ.\n"
        "Do not use the result. Remove stored hops (--cache), try --engine local, and test this machine's memory; "
        "if it stays, please report it."
    )
