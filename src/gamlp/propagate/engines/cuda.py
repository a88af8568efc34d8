"""On a graphics card, or any device of torch: the same hops through torch's sparse product.

    y^(l) = D^(−1) (A y^(l−1) [+ y^(l−1)]),    X^(l) = D^r y^(l)

Columns go in blocks so that the states of a block and the adjacency fit the device; sums are float32, and results are
rounded to their storage at the end. The last bits are the device's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from gamlp.errors import SettingsError
from gamlp.progress import progress
from gamlp.propagate.budget import Budget
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import degrees, power
from gamlp.propagate.sinks import Sink, as_stored
from gamlp.propagate.spec import Job
from gamlp.storage.threads import ranges

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice

VALUES_A_BLOCK = 2**28  # 1 GiB of float32 for each of the states


@dataclass(frozen=True)
class CudaEngine(Engine):
    """torch's sparse product on a device; "torch-cpu" is the processor through torch."""

    name: ClassVar[str] = "cuda"
    device: str = "cuda"

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> CudaEngine:
        """Run where training runs, or on the graphics card."""
        if choice.memory is not None:
            raise SettingsError("A memory limit was given for the engine 'cuda', which has none.\nUse --engine local.")
        return cls(cache=choice.cache, device=device if device != "cpu" else "cuda")

    @property
    def key_device(self) -> str:
        """Its own device."""
        return self.device

    def budget(self, job: Job) -> Budget:
        """Return blocks whose states fit the device."""
        step = max(1, VALUES_A_BLOCK // job.adjacency.nodes)
        return Budget([slice(*some) for some in ranges(job.width, step)])

    def run(self, job: Job, sink: Sink, budget: Budget, numbers: Sequence[int]) -> None:
        """Bring one block after the other through all hops."""
        place = torch_device(self.device)
        operator = Operator(job, place)
        wanted = slice(None) if job.spec.rows is None else torch.tensor(job.spec.rows, device=place)
        with progress("propagate", total=len(numbers) * job.spec.hops) as advance:
            for number in numbers:
                columns = budget.blocks[number]
                values = np.ascontiguousarray(job.columns[:, columns], dtype=np.float32)
                with sink.block(number, columns) as rows:
                    x = start = torch.tensor(values, device=place)
                    for hop in range(job.spec.hops + 1):
                        if hop:
                            x = operator(x, start)
                            advance()
                        if hop in job.spec.kept_hops:
                            rows.put(hop, slice(0, job.rows), as_stored(x[wanted].cpu().numpy(), job.spec.storage))


class Operator:
    """One hop: x → Âx, or with a restart clip(α Âx + (1 − α) x⁰)."""

    def __init__(self, job: Job, device: torch.device) -> None:
        graph, normalization, self.restart = job.adjacency, job.spec.normalization, job.spec.restart
        degree = degrees(graph, self_loops=normalization.self_loops)
        scales = (power(degree, p).astype(np.float32) for p in (-normalization.r, normalization.r - 1))
        self.before, self.after = (torch.tensor(scale, device=device)[:, None] for scale in scales)
        weights = np.ones(graph.entries, np.float32) if graph.weights is None else graph.weights
        parts = (graph.indptr, graph.indices.astype(np.int64), weights)
        indptr, indices, values = (torch.tensor(part, device=device) for part in parts)
        size = (graph.nodes, graph.nodes)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
            self.matrix = torch.sparse_csr_tensor(indptr, indices, values, size=size, check_invariants=False)
        self.self_loops = normalization.self_loops
        fixed = None if self.restart is None else self.restart.fixed
        self.fixed = None if fixed is None else torch.tensor(fixed, device=device)

    def __call__(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Return the next hop; all are (N, w)."""
        y = self.before * x
        hop = self.after * (self.matrix @ y + y if self.self_loops else self.matrix @ y)
        if self.restart is not None:
            alpha = self.restart.alpha
            hop = (alpha * hop + (1 - alpha) * start).clip(self.restart.low, self.restart.high)
        if self.fixed is not None:
            hop[self.fixed] = start[self.fixed]
        return hop


def torch_device(name: str) -> torch.device:
    """Return torch's device of this name, or say that it is not there; "torch-cpu" is the processor through torch."""
    try:
        device = torch.device(name.removeprefix("torch-"))
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(
            f"The device {name!r} cannot be used: {reason}.\nUse 'cpu', or 'cuda' where there is one."
        ) from error
    return device
