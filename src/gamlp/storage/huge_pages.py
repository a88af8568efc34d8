"""Large arrays on huge pages: reading far-apart rows then costs one address lookup each instead of a page walk."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gamlp.storage.files import Array

HUGE_PAGE = 2**21
LINE = 64
COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1, which Python has no name for
ROUNDS = 3  # of asking for the huge pages that are still missing


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array that begins on a cache line; from 2 MiB on, on a huge page where the system has them."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size < HUGE_PAGE:
        return on_a_line(shape, dtype)
    # memory of this process alone: shared memory, which Python gives by default, gets no huge pages
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    pages = mmap.mmap(-1, size + HUGE_PAGE, **private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return _aligned(np.frombuffer(pages, np.uint8), HUGE_PAGE, shape, dtype)


def on_a_line(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array that begins on a cache line, in memory that was used before if there is some."""
    size = prod(shape) * np.dtype(dtype).itemsize
    return _aligned(np.empty(size + LINE, np.uint8), LINE, shape, dtype)


def _aligned(memory: Array, step: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    start = -memory.ctypes.data % step
    return memory[start : start + len(memory) - step].view(dtype).reshape(shape)


def prefaulted(array: Array) -> Array:
    """Return an array of `empty`, touched, on huge pages as far as the system can make room for them.

    When files that were read have filled the memory, many first touches find no free huge page and get small ones, for
    good. Asked for one huge page at a time, the system moves others out of the way.
    """
    array.reshape(-1)[:: max(1, mmap.PAGESIZE // array.itemsize)] = 0
    pages = list(_huge_pages(array))
    for _ in range(ROUNDS):
        pages = [page for page in pages if not _collapsed(*page)]
    return array


def _huge_pages(array: Array) -> Iterator[tuple[mmap.mmap, int]]:
    """Yield the memory and the place in it of every huge page that an array fills."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        whole, owner = owner, owner.base
    owner = getattr(owner, "obj", owner)
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_HUGEPAGE"):
        first = -whole.ctypes.data % HUGE_PAGE
        yield from ((owner, at) for at in range(first, first + array.nbytes // HUGE_PAGE * HUGE_PAGE, HUGE_PAGE))


def _collapsed(pages: mmap.mmap, start: int) -> bool:
    """Ask for one huge page instead of small ones, and say whether it is there; if it was, that takes no time."""
    with suppress(OSError):
        pages.madvise(COLLAPSE, start, HUGE_PAGE)
        return True
    return False
