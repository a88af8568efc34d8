"""Measure the constants of a machine that the cost of a propagation is made of, within a minute.

- gather: seconds for one entry of a hop, which reads one row of a block; for narrow and wide rows, for blocks of two or
  three sizes, with the kernel that propagates, and with neighbours as graphs have them: far apart, few of them often
- stream: bytes a second that are read and written in order
- disk: bytes a second read and written, past the system's cache
- sgemm: float32 operations a second of a matrix product, which training is made of
- checksum: bytes a second that one thread hashes, as it does with every file of a graph directory
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamlp.errors import StorageError
from gamlp.machine.cost import Constants, Gather
from gamlp.machine.facts import free_bytes, processor_name
from gamlp.model.cpu.products import multiply
from gamlp.propagate import kernels
from gamlp.storage.files import Array, digest
from gamlp.storage.huge_pages import LINE, empty, prefaulted
from gamlp.storage.threads import Run, ranges, workers

DEGREE = 32
READ_BYTES = 2**29  # of rows in one measurement: more than a cache keeps until the next
SIZES = 2**26, 2**30  # bytes of a block's state
LARGEST = 2**33  # of a third, where half of the free memory allows for it
DISK_BYTES = 2**28
SCATTER = 2_654_435_761  # a prime: rank · SCATTER mod N is a different node for each rank
LEAST_SECONDS = 2.0  # of hops from a state: the system may still be busy with the memory that it was given


def measure(folder: Path, *, sizes: tuple[int, ...] | None = None, disk_bytes: int = DISK_BYTES) -> Constants:
    """Return the constants of this machine; `folder` says which disk is meant, and needs `disk_bytes` of free space."""
    wide, sizes = kernels.widest_block(), sizes or (*SIZES, *third_size(free_bytes() or 0))
    with workers() as run:
        pairs = [(lines, size) for size in sizes for lines in (1, wide)]
        gathers = tuple(Gather(*pair, seconds_an_entry(prefaulted(state(*pair)), run)) for pair in pairs)
        stream = stream_bytes(run)
    reads, writes = disk_speeds(folder, disk_bytes)
    matrix = torch.ones(1024, 1024)
    product = 2 * 1024**3 / best(lambda: multiply(matrix, matrix), 5)
    return Constants(gathers, stream, reads, writes, product, processor_name(), checksum_bytes())


def third_size(free: int) -> tuple[int, ...]:
    """Return the largest power of two within half of the free memory, if it is well above the others."""
    size = min(LARGEST, 2 ** (max(free // 2, 1).bit_length() - 1))
    return (size,) if size > 2 * SIZES[-1] else ()


def state(lines: int, size: int) -> Array:
    """Return an uninitialised state of `size` bytes, rows of so many cache lines."""
    return empty((size // (lines * LINE), lines * LINE // 4), np.float32)


def seconds_an_entry(x: Array, run: Run) -> float:
    """Return the seconds that one entry of a hop costs which reads from this state."""
    run([partial(x[a:b].fill, 1) for a, b in ranges(len(x), 2**24 // x[:1].nbytes)])
    rows = READ_BYTES // (x[:1].nbytes * DEGREE)
    indices = skewed_neighbours(len(x), rows * DEGREE)
    indptr = np.arange(rows + 1, dtype=np.int64) * DEGREE
    out, scale = empty((rows, x.shape[1]), np.float32), np.ones(rows, np.float32)
    hop = partial(kernels.sum_rows, (0, 0, indptr, indices, None, scale), x, False, out, DEGREE)
    tasks = [partial(hop, *some, kernels.quads(x.shape[1])) for some in ranges(rows, rows // 16)]
    return best(lambda: run(tasks), 3, LEAST_SECONDS) / len(indices)


def skewed_neighbours(nodes: int, count: int) -> Array:
    """Draw ids with probability ∝ 1/√rank, the ranks scattered over the ids: a tenth of them are one node in a hundred.

    Nobody's graph has neighbours drawn evenly, and caches hold the rows of those that many share.
    """
    rank = (nodes * np.random.default_rng(0).random(count) ** 2).astype(np.int64)
    return np.asarray(rank * SCATTER % nodes, np.int32)


def stream_bytes(run: Run, size: int = 2**27) -> float:
    """Return the bytes a second of a copy, those read and those written both counted."""
    source, target = empty((size,), np.uint8), empty((size,), np.uint8)
    source[:] = 1
    tasks = [partial(np.copyto, target[a:b], source[a:b]) for a, b in ranges(size, size // 16)]
    return 2 * size / best(lambda: run(tasks), 3)


def checksum_bytes(size: int = 2**26) -> float:
    """Return the bytes a second of a checksum."""
    content = np.ones(size, np.uint8)
    return size / best(lambda: digest(content), 3)


def disk_speeds(folder: Path, size: int) -> tuple[float, float]:
    """Return bytes a second (read, written) of the disk below `folder`, past the system's cache."""
    path = folder / f".gamlp-doctor-{secrets.token_hex(4)}"
    block = np.random.default_rng(0).integers(0, 256, min(size, 2**24), dtype=np.uint8)
    try:
        with path.open("wb", buffering=0) as file:
            started = time.perf_counter()
            for _ in range(0, size, len(block)):
                file.write(block.data)
            os.fsync(file.fileno())
            written = time.perf_counter() - started
        with path.open("rb", buffering=0) as file:
            if hasattr(os, "posix_fadvise"):  # the system is asked to forget it
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            started = time.perf_counter()
            while file.readinto(block.data):
                pass
            return size / (time.perf_counter() - started), size / written
    except OSError as error:
        raise StorageError(
            f"The disk below {folder} could not be measured: {error.strerror or error}.\n"
            "Name a folder that can be written to with --folder."
        ) from error
    finally:
        path.unlink(missing_ok=True)


def best(work: Callable[[], Any], times: int, least: float = 0) -> float:
    """Return the shortest of some times, after one that does not count: others may be using the machine too.

    There are `times` of them, or as many more as fit in `least` seconds.
    """
    work()
    seconds: list[float] = []
    while len(seconds) < times or sum(seconds) < least:
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
