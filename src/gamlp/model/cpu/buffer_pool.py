"""A pool of buffers for the large results of a training step: what one step frees, the next one takes.

    with reuse_buffers():
        …                             every `empty` array that is freed goes back to the pool

A step asks for the same sizes as the one before. Fresh memory costs a fault and a clearing for every page of it, time
that the matrix products of a step wait for. What is free at a time need not be much: the network of papers100M (hidden
1024, 5,000 rows) takes 1,345 MiB with 64 MiB of free buffers and 2,024 with 1 GiB of them, and 1.02 times as long.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np
import torch
from torch import Tensor

from gamlp.storage import huge_pages
from gamlp.storage.files import Array

LIMIT = 2**26  # bytes of free buffers
LARGE = 2**19  # numbers from which on huge pages pay: 2 MiB


class BufferPool:
    """Free buffers, sorted by size; one serves for what fills at least half of it."""

    def __init__(self) -> None:
        self._free: list[Array] = []
        self._returned: deque[Array] = deque()  # by finalizers: at any moment and in any thread
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...]) -> Array:
        """Return an array whose buffer comes back when it, and all views of it, are freed."""
        size = prod(shape)
        buffer = self._take(size)
        array = np.frombuffer(buffer.data, np.float32, size)  # views refer to this one, not to the buffer
        weakref.finalize(array, self._returned.append, buffer).atexit = False
        return array.reshape(shape)

    def _take(self, size: int) -> Array:
        """Return a buffer of at least so many values."""
        with self._lock:
            while self._returned:
                insort(self._free, self._returned.popleft(), key=len)
            while sum(buffer.nbytes for buffer in self._free) > LIMIT:
                self._free.pop(0)
            at = bisect_left(self._free, size, key=len)
            if at < len(self._free) and len(self._free[at]) <= 2 * size:
                return self._free.pop(at)
        return huge_pages.empty((size,), np.float32)


_pools: list[BufferPool] = []  # one at most: of the training or prediction that is under way


@contextmanager
def reuse_buffers() -> Iterator[None]:
    """Reuse buffers until the block ends; a block inside another shares its pool."""
    if _pools:
        yield
        return
    _pools.append(BufferPool())
    try:
        yield
    finally:
        _pools.clear()


def empty(shape: tuple[int, ...]) -> Array:
    """Return an uninitialised float32 array that begins on a cache line."""
    pools = _pools[:1]  # looked at once: another thread may end it
    return pools[0].empty(shape) if pools else huge_pages.on_a_line(shape, np.float32)


def empty_tensor(shape: tuple[int, ...]) -> Tensor:
    """Return an uninitialised float32 tensor; a large one is on huge pages, and from the pool."""
    return torch.empty(shape) if prod(shape) < LARGE else torch.from_numpy(empty(shape))
