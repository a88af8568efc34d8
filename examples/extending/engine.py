"""An engine of one's own: scipy's sparse product, in float64.

Register it by one line of ENGINES in `gamlp/propagate/engines/__init__.py`:

    "scipy": ("gamlp.propagate.engines.scipy", "ScipyEngine"),

and use it: gamlp train debian --engine scipy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from gamlp.errors import SettingsError
from gamlp.propagate.budget import Budget
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import degrees, power
from gamlp.propagate.sinks import as_stored


@dataclass(frozen=True)
class ScipyEngine(Engine):
    """One block of all columns, on one core."""

    name: ClassVar[str] = "scipy"

    @classmethod
    def from_choice(cls, choice, device):
        """Refuse what it cannot do."""
        if choice.memory is not None:
            raise SettingsError("A memory limit was given for the engine 'scipy', which has none.\nUse --engine local.")
        return cls(cache=choice.cache)

    @property
    def key_device(self):
        """Its sums are float64: other last bits."""
        return "scipy"

    def budget(self, job):
        """Return one block."""
        return Budget([slice(0, job.width)])

    def run(self, job, sink, budget, numbers):
        """Multiply."""
        operator, spec = self.operator(job), job.spec
        wanted = slice(None) if spec.rows is None else spec.rows
        for number in numbers:
            columns = budget.blocks[number]
            x = start = np.asarray(job.columns[:, columns], dtype=np.float64)
            with sink.block(number, columns) as rows:
                for hop in range(spec.hops + 1):
                    x = self.step(operator, x, start, spec.restart) if hop else x
                    if hop in spec.kept_hops:
                        rows.put(hop, slice(0, job.rows), as_stored(x[wanted].astype(np.float32), spec.storage))

    def operator(self, job):
        """Return Â = D^(r−1) A D^(−r)."""
        graph, normalization = job.adjacency, job.spec.normalization
        values = np.ones(graph.entries) if graph.weights is None else graph.weights.astype(np.float64)
        matrix = sparse.csr_array((values, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
        matrix = matrix + sparse.eye_array(graph.nodes) if normalization.self_loops else matrix
        degree = degrees(graph, self_loops=normalization.self_loops)
        left, right = (sparse.diags_array(power(degree, p)) for p in (normalization.r - 1, -normalization.r))
        return left @ matrix @ right

    def step(self, operator, x, start, restart):
        """Return the next hop."""
        x = operator @ x
        if restart is not None:
            x = (restart.alpha * x + (1 - restart.alpha) * start).clip(restart.low, restart.high)
            if restart.fixed is not None:
                x[restart.fixed] = start[restart.fixed]
        return x
