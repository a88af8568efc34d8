"""Train with several processes that each read their part of every batch (`torchrun -m gamlp train …`).

    L = Σ_ranks L_rank,    L_rank = (the sum over its rows) / (the weight of the whole batch)

A batch is a function of (seed, stage, epoch, step), so every rank knows the whole of it and takes its share of the
rows; gradients are added up, so without batch norm they are those of one process. Batch norm sees a rank's own rows;
its running means and variances are averaged over the ranks after every epoch, before anything is evaluated. Dropout
draws other masks on every rank. Weights are the same on all ranks at every step.

Validation and prediction are shared out by rows and gathered. The first rank alone reads and writes the run directory,
and tells the others what it found there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from gamlp.errors import SettingsError
from gamlp.storage.files import Array

Anything = TypeVar("Anything")
PATIENCE = timedelta(days=7)  # the others wait while the first propagates; torchrun ends them all if one is lost


class Ranks:
    """The processes that train together, and which of them this is; alone, nothing is sent."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    def share(self, ids: Array) -> Array:
        """Return this rank's part of some rows."""
        return ids[len(ids) * self.rank // self.count : len(ids) * (self.rank + 1) // self.count]

    def check(self, smallest_batch: int) -> None:
        """Refuse batches that leave a rank without rows to normalise over."""
        if self.count > 1 and smallest_batch // self.count < 2:
            raise SettingsError(
                f"A batch has {smallest_batch:,} rows for {self.count} processes.\n"
                "Each needs two at least: use fewer processes, or a larger batch_size."
            )

    def add_gradients(self, network: nn.Module) -> None:
        """Replace every gradient by the sum over the ranks."""
        if self.count > 1:
            _in_one([p.grad for p in network.parameters() if p.grad is not None])

    @torch.no_grad()
    def average_buffers(self, network: nn.Module) -> None:
        """Replace running means and variances by their mean over the ranks."""
        if self.count > 1:
            running = [buffer for buffer in network.buffers() if buffer.is_floating_point()]
            _in_one(running)
            for buffer in running:
                buffer.div_(self.count)

    def gather(self, part: Array) -> Array:
        """Return the parts of all ranks, one after the other."""
        parts = self._of_all(part)
        return part if self.count == 1 else np.concatenate([one for one in parts if len(one)] or parts)

    def total(self, value: float) -> float:
        """Return the sum over the ranks."""
        return float(sum(self._of_all(value)))

    def from_first(self, content: Anything) -> Anything:
        """Return what the first rank has."""
        if self.count == 1:
            return content
        held = [content]
        torch.distributed.broadcast_object_list(held, src=0)
        return held[0]

    def in_turn(self, make: Callable[[], Anything]) -> Anything:
        """Make the same thing on all ranks, the first before the others: what it leaves in a cache, they find there."""
        if not self.rank:
            made = make()
        if self.count > 1:
            torch.distributed.barrier()
        return make() if self.rank else made

    def _of_all(self, part: Anything) -> list[Anything]:
        parts = [part] * self.count
        if self.count > 1:
            torch.distributed.all_gather_object(parts, part)
        return parts


ALONE = Ranks()
_joined: list[Ranks] = []  # one at most: the process group is the process's own


def ranks() -> Ranks:
    """Return the processes that train together; one, unless `joined`."""
    return _joined[0] if _joined else ALONE


def launched() -> bool:
    """Say whether torchrun started this process, with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def joined(device: str = "cpu") -> Iterator[Ranks]:
    """Join the processes that torchrun started: gloo on processors, nccl on GPUs, where each takes its own."""
    if not launched():
        yield ALONE
        return
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    import_module("torch.distributed.nn")  # its default arguments hold the group, if there is one when torch loads it
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    _joined[:] = [Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size())]
    try:
        yield _joined[0]
    finally:
        _joined.clear()
        torch.distributed.destroy_process_group()


@torch.no_grad()
def _in_one(tensors: list[Tensor]) -> None:
    """Add tensors up over the ranks, in one message."""
    if not tensors:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    torch.distributed.all_reduce(flat)
    parts = torch.split_with_sizes(flat, [tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view_as(tensor))
