"""The rows that a network reads: feature hops, label hops and X^(∞), gathered for a batch of nodes.

Hops may lie in a file. Looking at far-apart rows through its map makes the system fetch a page, and what lies around
it, whenever a row is touched first, one row after the other. `MappedRows` reads each run of neighbouring rows at once,
just its bytes, and as many runs at a time as there are threads, which is what a disk is quick at. Files that fit in
half of the memory are looked at through the map: the system's cache soon holds them whole. What is seen through a map
counts as held by the process, so within a memory limit only small files are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamlp.machine.facts import memory_bytes
from gamlp.model import Network
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.propagate.block_files import Blocks
from gamlp.propagate.hops import Hops
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array, is_whole_file
from gamlp.storage.threads import ranges, workers

KEEP_BYTES = 2**29  # of fixed sets of rows (training set in one step, validation set) that stay gathered
ROWS_A_PART = 4096  # that a network passes without learning: as quick as more, and buffers of a training step hold them
THREADS = 16  # reads under way at a time

Batch = tuple[Tensor, Tensor | None, Tensor | None]  # hops, labels, stationary


class Inputs:
    """Feature hops (R, K+1, F), or (R, S, K+1, F), and, where the network reads labels, label hops (R, C)."""

    def __init__(self, hops: Hops, labels: Array | None, device: str = "cpu", *, memory: int | None = None) -> None:
        """`memory` is the limit of the process, None = none."""
        self.hops, self.labels, self.device = hops, labels, device
        self._order: Array | None = None  # what sorts the rows of the hops, where they are not sorted
        if hops.rows is not None and bool((np.diff(hops.rows) < 0).any()):
            self._order = np.argsort(hops.rows)
        limit = None if memory is None else memory // 16
        self._file = mapped_rows(hops.values, limit=limit)
        self._label_file = None if labels is None or memory is None else mapped_rows(labels[:, None], limit=limit)
        self._kept: dict[bytes, Batch] = {}
        self._to_keep = KEEP_BYTES if memory is None else min(KEEP_BYTES, memory // 16)

    def rows_of(self, ids: Array) -> Array:
        """Return where the nodes `ids` stand in the hops."""
        if self.hops.rows is None:
            return ids
        if self._order is None:
            return np.searchsorted(self.hops.rows, ids)
        return np.asarray(self._order[np.searchsorted(self.hops.rows, ids, sorter=self._order)])

    def gather(self, ids: Array, *, keep: bool = False) -> Batch:
        """Return (hops, labels, stationary) of the nodes `ids` as tensors; `keep` a set that is read again."""
        if keep and (known := self._kept.get(ids.tobytes())) is not None:
            return known
        rows = self.rows_of(ids)
        stationary = None if self.hops.stationary is None else self._tensor(np.take(self.hops.stationary, rows, axis=0))
        labels = None if self.labels is None else self._tensor(self._label_rows(rows))
        batch = (self._tensor(self._hop_rows(rows)), labels, stationary)
        size = sum(part.nbytes for part in batch if part is not None)
        if keep and size <= self._to_keep:
            self._kept[ids.tobytes()] = batch
            self._to_keep -= size
        return batch

    def begin_epoch(self, network: Network, ids: Array, key: list[int]) -> None:
        """Get ready for an epoch that trains the nodes `ids`; key is (seed, stage, epoch)."""

    @contextmanager
    def reading_all(self, network: Network) -> Iterator[None]:
        """Read all that there is within the block, as evaluation does."""
        yield

    def _hop_rows(self, rows: Array) -> Array:
        if self._file is not None:
            return self._file.take(rows)
        values = self.hops.values  # of a slice np.take would copy all rows first
        return np.take(values, rows, axis=0) if values.flags.c_contiguous else values[rows]

    def _label_rows(self, rows: Array) -> Array:
        assert self.labels is not None
        return np.take(self.labels, rows, axis=0) if self._label_file is None else self._label_file.take(rows)[:, 0]

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values).to(self.device).float()


class CombinedInputs(Inputs):
    """Hops that are added up before the network reads them, with the same weights for every node: (B, 1, F).

    Once for all rows where there is no memory limit, else for each batch; a row has the same bits either way.
    """

    def __init__(
        self, hops: Hops, labels: Array | None, device: str = "cpu", *, shares: Array, memory: int | None = None
    ) -> None:
        super().__init__(hops, labels, device, memory=memory)
        self.shares = shares
        self._combined = None if memory is not None or self._file is not None else added_up(hops.values, shares)

    def _hop_rows(self, rows: Array) -> Array:
        if self._combined is not None:
            return np.take(self._combined, rows, axis=0)
        return added_up(super()._hop_rows(rows), self.shares)


def added_up(hops: Array, shares: Array) -> Array:
    """Return Σ_l wˡ xˡ, hop by hop.  hops (R, K+1, F), shares (K+1,) → (R, 1, F) float32."""
    total = np.zeros((len(hops), 1, hops.shape[2]), np.float32)
    for hop, share in enumerate(shares):
        if share:
            total[:, 0] += share * hops[:, hop].astype(np.float32, copy=False)
    return total


@torch.no_grad()
def predict(network: Network, inputs: Inputs, ids: Array, *, keep: bool = False) -> tuple[Array, Array]:
    """Return logits (R, C) and attention weights (R, K+1) of the nodes `ids`, without dropout."""
    if network.training:
        network.eval()
    with inputs.reading_all(network), reuse_buffers():
        parts = (network(*inputs.gather(part, keep=keep)) for part in in_parts(inputs, ids))
        logits, weights = joined(parts, len(ids))
    return logits, weights


def joined(parts: Iterator[tuple[Tensor, ...]], rows: int) -> list[Array]:
    """Return two results of a network, each of all parts, as arrays of so many rows, which hold no part twice."""
    whole: list[Array] = []
    done = 0
    for part in parts:
        values = [tensor.cpu().numpy() for tensor in part]
        whole = whole or [np.empty((rows, *value.shape[1:]), value.dtype) for value in values]
        for target, value in zip(whole, values, strict=True):
            target[done : done + len(value)] = value
        done += len(values[0])
    return whole or [np.zeros((0, 0), np.float32)] * 2


@torch.no_grad()
def embed(network: Network, inputs: Inputs, ids: Array) -> Array:
    """Return what the last layer of the network reads of the nodes `ids`, (R, hidden), without dropout."""
    network.eval()
    with inputs.reading_all(network), reuse_buffers():
        batches = (inputs.gather(part) for part in in_parts(inputs, ids))
        parts = [network.embed(hops, stationary).cpu().numpy() for hops, _, stationary in batches]
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def in_parts(inputs: Inputs, ids: Array) -> Iterator[Array]:
    """Cut ids into parts of at most `ROWS_A_PART`, whose hops take 256 MiB of float32 at most."""
    row = math.prod(inputs.hops.values.shape[1:])
    for first, last in ranges(len(ids), max(1, min(ROWS_A_PART, 2**26 // max(1, row)))):
        yield ids[first:last]


class MappedRows:
    """Reads rows of a mapped file, or of blocks, (R, …), of which the first `hops` hops are wanted."""

    def __init__(self, whole: Array | Blocks, hops: int) -> None:
        self.whole, self.hops = whole, hops
        self._source = None if isinstance(whole, Blocks) else ArrayReader(whole)

    def take(self, rows: Array) -> Array:
        """Return values[rows]; in whatever order and however often they are named."""
        wanted, place = np.unique(rows, return_inverse=True)
        out = np.empty((len(wanted), *self.whole.shape[1:]), self.whole.dtype)
        cuts = np.flatnonzero(np.diff(wanted) != 1) + 1
        starts, stops = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(wanted)]])

        def read(share: int) -> None:
            for start, stop in zip(starts[share::THREADS].tolist(), stops[share::THREADS].tolist(), strict=True):
                if stop > start:
                    self._read(int(wanted[start]), out[start:stop])

        with workers(THREADS) as run:
            run([partial(read, share) for share in range(THREADS)])
        found = out if len(wanted) == len(rows) and bool((place[1:] > place[:-1]).all()) else out[place]
        return found[..., : self.hops, :]

    def _read(self, first: int, out: Array) -> None:
        """Fill `out` with the rows from the first on."""
        if isinstance(self.whole, Blocks):
            self.whole.read(first, out)
        elif self._source is not None:
            self._source.rows(first, first + len(out), out)


def mapped_rows(values: Any, *, limit: int | None = None) -> MappedRows | None:
    """Return a reader for hops in blocks, or a file of more than `limit` bytes, by default half of the memory."""
    if isinstance(values, Blocks):
        return MappedRows(values, values.shape[-2])
    whole = values if is_whole_file(values) else getattr(values, "base", None)
    if whole is None or not is_whole_file(whole) or not whole.flags.c_contiguous:
        return None
    beginning = values.ctypes.data == whole.ctypes.data and values.shape[-1] == whole.shape[-1]
    if not beginning or values.ndim != whole.ndim or values.ndim < 3 or values.shape[:-2] != whole.shape[:-2]:
        return None
    if limit is None:
        limit = (memory_bytes() or 2**34) // 2
    return MappedRows(whole, values.shape[-2]) if whole.nbytes > limit else None
