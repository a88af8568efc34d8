"""Large arrays on huge pages: reading far-apart rows then costs one address lookup each instead of a page walk."""

from __future__ import annotations

import mmap
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gamlp.files import Array

HUGE_PAGE = 2**21
LINE = 64


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array that begins on a cache line; from 2 MiB on, on a huge page where the system has them."""
    kind: np.dtype[Any] = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if size < HUGE_PAGE:
        memory = np.empty(size + LINE, np.uint8)
        start = -memory.ctypes.data % LINE
        return memory[start : start + size].view(kind).reshape(shape)
    pages = _own_pages(size + HUGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(pages, np.uint8)
    start = -whole.ctypes.data % HUGE_PAGE
    return whole[start : start + size].view(kind).reshape(shape)


def _own_pages(size: int) -> mmap.mmap:
    """Return memory of this process alone: shared memory, which Python gives by default, gets no huge pages."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
