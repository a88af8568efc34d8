"""How much memory is left of a limit that the whole process keeps.

    room = limit − resident,   resident: all that the process holds now, Python and its libraries among it

A limit below `FLOOR`, which these alone take up, is that of the work alone: `LEAST` bytes, or less if it says so.

What a program holds grows and shrinks on its way: a graph's labels, a network and its optimiser, predictions. So the
room is measured when work begins that can choose how much it takes, after what is free has been given back.

From then on a large array is a mapping of its own, which goes back to the system when the array is freed. glibc would
put arrays of up to 32 MiB side by side into its heap, once it has seen some of them freed; a heap does not shrink below
what is still in use at its end, and every stage of a training then needs more of it than the one before.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path

from gamlp.progress import log
from gamlp.storage.sizes import format_size

LEAST = 2**26  # that work gets however much is held already: what cannot be done in it is refused with its own numbers
LARGE = 2**20  # bytes of an array from which on it is not put into the heap
MMAP_THRESHOLD = -3  # of mallopt, as glibc's malloc.h names it
FLOOR = 3 * 2**28  # of a process that trains: Python, torch, numba and scikit-learn, measured 0.5 GiB, and some work


def room_within(limit: int) -> int:
    """Return the bytes that work may take so that the process stays within `limit`."""
    give_back()
    return max(limit - resident_bytes(), min(limit, LEAST))


def resident_bytes() -> int:
    """Return what the process holds in memory; 0 where the system does not tell."""
    with suppress(OSError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) * 1024
    return 0


def give_back() -> None:
    """Return to the system what is free, and what will be: C keeps freed memory for later, and it counts as held."""
    gc.collect()
    with suppress(OSError, AttributeError):  # glibc has them
        system = ctypes.CDLL(None)
        system.mallopt(MMAP_THRESHOLD, LARGE)
        system.malloc_trim(0)


def check_limit(limit: int) -> None:
    """Say so where a limit is below what the program takes before it has read anything."""
    if limit < FLOOR:
        log.warning(
            "--memory %s: Python, torch and numba take about half a GiB before anything is read. From %s on the limit "
            "is that of the whole process; this one is that of what the work adds.",
            *(format_size(limit), format_size(FLOOR)),
        )
