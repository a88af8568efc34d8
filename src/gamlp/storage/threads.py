"""Run pieces of compiled work on a few threads, each taking the next piece when it is done with one.

Plain Python threads do: the kernels hold no interpreter lock, and a piece takes far longer than handing it out.
Unlike OpenMP's, these threads are gone when the work is done, so a later fork is safe.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

Piece = Callable[[], Any]
Run = Callable[[Sequence[Piece]], list[Any]]


def available() -> int:
    """Return how many threads may run: the processors given to this process, or OMP_NUM_THREADS if that is fewer."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(processors, int(limit))) if limit.isdigit() else processors


@contextmanager
def workers(threads: int | None = None) -> Iterator[Run]:
    """Yield a function that runs pieces and returns their results in order; one thread means this one."""
    threads = threads or available()
    if threads == 1:
        yield lambda pieces: [piece() for piece in pieces]
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="gamlp") as pool:

        def run(pieces: Sequence[Piece]) -> list[Any]:
            if len(pieces) == 1:
                return [pieces[0]()]
            return [future.result() for future in [pool.submit(piece) for piece in pieces]]

        yield run


def ranges(count: int, size: int) -> list[tuple[int, int]]:
    """Cut 0 … count−1 into ranges of at most `size`."""
    return [(at, min(at + size, count)) for at in range(0, count, size)]
