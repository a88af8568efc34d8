"""How wide a block of columns may be within a given amount of memory.

    2·N·width·itemsize   the states of a block; 3 to restart   8·chunk   chunks of adjacency, features and results
    S·width·4            the sums of the hubs' S segments      12·R      the wanted rows and their scales; unsorted 20·R
    8·N                  row sums, of weighted graphs only     256 MiB   the interpreter itself, at most 1/16 of all
    2·N                  which rows are not zero, of sources that tell

Nothing else that is held grows with the graph. Wider blocks read the adjacency fewer times; where all of it
fits in what is to spare then, it is read once. Without a limit blocks are as wide as the registers allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gamlp.errors import SettingsError
from gamlp.propagate.chunks import LONGEST
from gamlp.propagate.sources import ColumnSource
from gamlp.propagate.spec import Job
from gamlp.storage.huge_pages import LINE
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import ranges

LEAST_CHUNK, MOST_CHUNK = 2**18, 2**26


@dataclass(frozen=True)
class Budget:
    """The blocks of columns, the bytes in a chunk of the adjacency, and those to spare for chunks that are kept."""

    blocks: list[slice]
    chunk_bytes: int | None = None  # None: no limit
    spare: int = 0


def budget(job: Job, memory: int | None, at_once: int = 1) -> Budget:
    """Return the widest blocks that `memory` bytes allow, None = any.

    Where `at_once` blocks are computed side by side, each in so much memory, there are as many of them if the columns
    fill so many cache lines.
    """
    from gamlp.propagate import kernels, layout

    adjacency, spec, nodes = job.adjacency, job.spec, job.adjacency.nodes
    itemsize = np.dtype(spec.storage).itemsize
    cut = partial(layout.column_blocks, job.width, nodes=nodes, itemsize=itemsize)
    if memory is None:
        return Budget(cut(kernels.widest_block()))
    chunk = int(np.clip(memory // 64, LEAST_CHUNK, MOST_CHUNK))
    fixed = min(2**28, memory // 16) + 8 * chunk + (0 if adjacency.weights is None else 8 * nodes)
    fixed += 2 * nodes if isinstance(job.columns, ColumnSource) and job.columns.sparse else 0
    fixed += 0 if spec.rows is None else (12 if spec.sorted_rows[1] is None else 20) * job.rows
    segments = 2 * adjacency.entries // LONGEST + 1  # at most: a segment but the last of its hub is full
    each = (2 if spec.restart is None else 3) * nodes * itemsize + 4 * segments
    room = (memory - fixed) // each  # columns
    line = LINE // itemsize  # columns
    lines = -(-job.width // line)
    share = -(-lines // at_once) * line
    vectors = min(room // kernels.LANES, kernels.widest_block(), share // kernels.LANES)
    if vectors > 0:
        blocks = cut(vectors)
        widest = max(kernels.padded(block.stop - block.start) for block in blocks)
        return Budget(blocks, chunk, memory - fixed - widest * each)
    width = next((width for width in (8, 4) if width <= room), 0)
    if not width:
        raise SettingsError(
            f"{format_size(memory)} are too little memory: {nodes:,} nodes need "
            f"{format_size(fixed + 4 * each)} for four columns of {spec.storage} at a time.\n"
            "Give more memory" + (", or store hops as float16." if spec.storage == "float32" else ".")
        )
    return Budget([slice(*some) for some in ranges(job.width, width)], chunk)
