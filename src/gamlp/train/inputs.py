"""The rows that a network reads: feature hops, label hops and X^(∞), gathered for a batch of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from gamlp.model import Network, Output
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.propagate.hops import Hops
from gamlp.storage.files import Array
from gamlp.train.mapped_rows import mapped_rows

if TYPE_CHECKING:
    from torch import Tensor

KEEP_BYTES = 2**29  # a fixed set of rows (training set in one step, validation set) stays gathered up to this size


@dataclass
class Inputs:
    """Feature hops (R, K+1, F), or (R, S, K+1, F), and, where the network reads labels, label hops (R, C)."""

    hops: Hops
    labels: Array | None
    nodes: int
    device: str = "cpu"

    def __post_init__(self) -> None:
        self._row_of: Array | None = None
        if self.hops.rows is not None:
            self._row_of = np.full(self.nodes, -1, dtype=np.int64)
            self._row_of[self.hops.rows] = np.arange(len(self.hops.rows))
        self._file = mapped_rows(self.hops.values)
        self._kept: dict[bytes, tuple[Tensor, Tensor | None, Tensor | None]] = {}

    def rows_of(self, ids: Array) -> Array:
        """Return where the nodes `ids` stand in the hops."""
        return ids if self._row_of is None else self._row_of[ids]

    def gather(self, ids: Array, *, keep: bool = False) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return (hops, labels, stationary) of the nodes `ids` as tensors; `keep` a set that is read again."""
        if keep and (known := self._kept.get(ids.tobytes())) is not None:
            return known
        rows = self.rows_of(ids)
        stationary = self.hops.stationary
        batch = (
            self._hop_rows(rows),
            None if self.labels is None else self._tensor(self.labels, rows),
            None if stationary is None else self._tensor(stationary, rows),
        )
        if keep and batch[0].nbytes <= KEEP_BYTES:
            self._kept[ids.tobytes()] = batch
        return batch

    def begin_epoch(self, network: Network, ids: Array, key: list[int]) -> None:
        """Get ready for an epoch that trains the nodes `ids`; key is (seed, stage, epoch)."""

    @contextmanager
    def reading_all(self, network: Network) -> Iterator[None]:
        """Read all that there is within the block, as evaluation does."""
        yield

    def _hop_rows(self, rows: Array) -> Tensor:
        if self._file is not None:
            return torch.from_numpy(self._file.take(rows)).to(self.device).float()
        return self._tensor(self.hops.values, rows)

    def _tensor(self, values: Array, rows: Array) -> Tensor:
        return torch.from_numpy(np.take(values, rows, axis=0)).to(self.device).float()


@torch.no_grad()
def predict(
    network: Network, inputs: Inputs, ids: Array, *, batch_size: int = 10_000, keep: bool = False
) -> tuple[Array, Array]:
    """Return logits (R, C) and attention weights (R, K+1) of the nodes `ids`, without dropout."""
    network.eval()
    row = math.prod(inputs.hops.values.shape[1:])
    size = max(1, min(batch_size, 2**26 // max(1, row)))  # 256 MiB of float32 at a time
    with inputs.reading_all(network), reuse_buffers():
        parts: list[Output] = [
            network(*inputs.gather(ids[start : start + size], keep=keep)) for start in range(0, len(ids), size)
        ]
    if not parts:
        return np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32)
    return (
        torch.cat([part.logits for part in parts]).cpu().numpy(),
        torch.cat([part.weights for part in parts]).cpu().numpy(),
    )
