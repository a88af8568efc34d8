"""What a propagation costs: time, memory and disk for any N, E, F, K, on one machine or on m like it.

    lines    L = ⌈F·b / 64⌉ cache lines in a row of features stored with b bytes, cut into blocks of l lines
    a hop    of one block: E·t(l, s) + 2·s / stream,   t: seconds an entry, rows of l lines in a state of s = 64·N·l
    reading  of the adjacency, A = 4E + 8N bytes, while the hop computes: the longer of the two counts
    last     hop: of the wanted rows alone where these are few, a share R/N of the entries
    results  R·(K+1)·F·b bytes, R·F·b where the last hop alone is kept: copied once without a memory limit; written,
             read and joined within one
    check    of a graph directory, which every command begins with: its A + 4·N·F bytes, read and hashed

t is measured at two widths and a few sizes (`measure`), linear in the width and in the logarithm of the size between
and beyond them: larger states miss more of the processor's caches and tables. How wide a block may be is the
processor's too: the wider of the widths that were measured. docs/cost-model.md has the whole, with what was measured.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, log2
from typing import Literal

from gamlp.errors import SettingsError
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import ranges

LINE = 64
FEW = 0.5  # share of wanted rows up to which the last hop sums these alone (`propagate.block`)
CHUNKS = 8 * 2**26  # bytes of the adjacency and of features on their way, at most


@dataclass(frozen=True)
class Gather:
    """Seconds for one entry of a hop, with rows of so many cache lines in a state of so many bytes."""

    lines: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Constants:
    """What was measured: gathers (narrow and wide, for sizes that rise) and bytes a second."""

    gathers: tuple[Gather, ...]
    stream: float
    disk_read: float
    disk_write: float
    sgemm: float
    processor: str = ""  # that all this was measured on
    checksum: float = 1e9  # bytes a second that are hashed; older records have none

    def widest(self, item: int) -> int:
        """Return the most lines of a block whose values have so many bytes: its sums stay in registers, as float32."""
        return max(one.lines for one in self.gathers) * item // 4

    def seconds_an_entry(self, lines: float, state: float) -> float:
        """Return t(l, s)."""
        narrow, wide = self.gathers[::2], self.gathers[1::2]
        sizes = [log2(one.bytes) for one in narrow]
        # where a larger state was faster, something else was in the way
        seconds = list(accumulate((_along_lines(*pair, lines) for pair in zip(narrow, wide, strict=True)), max))
        size = max(log2(max(state, 1)), sizes[0])  # a state that is smaller than the smallest is no faster
        at = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
        share = (size - sizes[at - 1]) / (sizes[at] - sizes[at - 1])
        return seconds[at - 1] + share * (seconds[at] - seconds[at - 1])


@dataclass(frozen=True)
class Work:
    """A propagation: N nodes, E adjacency entries, F features, K hops, R wanted rows."""

    nodes: int
    entries: int
    features: int
    hops: int
    rows: int
    storage: Literal["float32", "float16"] = "float32"
    keep: Literal["all", "last"] = "all"  # of label hops the last alone is kept

    @property
    def item(self) -> int:
        """Return b, the bytes of a stored value."""
        return 4 if self.storage == "float32" else 2

    @property
    def lines(self) -> int:
        """Return L."""
        return ceil(self.features * self.item / LINE)

    @property
    def last(self) -> float:
        """Return the share of the entries that the last hop reads."""
        return self.rows / self.nodes if self.rows <= FEW * self.nodes else 1.0

    @property
    def adjacency(self) -> int:
        """Return A, the bytes of the adjacency."""
        return (4 if self.nodes < 2**31 else 8) * self.entries + 8 * self.nodes

    @property
    def graph(self) -> int:
        """Return the bytes of the adjacency and of the features."""
        return self.adjacency + 4 * self.nodes * self.features

    @property
    def result(self) -> int:
        """Return the bytes of the hops that are kept."""
        return self.rows * (self.hops + 1 if self.keep == "all" else 1) * self.features * self.item


@dataclass(frozen=True)
class Cost:
    """What is predicted for one engine."""

    engine: str
    seconds: float
    memory: int  # bytes on each machine
    disk: int  # bytes while it runs, the graph directory included
    blocks: int
    at_once: int = 1


def predict(
    work: Work, constants: Constants, *, memory: int, machines: int = 1, ram: int | None = None
) -> dict[str, Cost]:
    """Return the cost for each engine: `memory` is that of a block, `ram` what a machine has, by default as much."""
    given = {"memory": memory, "ram": max(ram or memory, memory)}
    return {
        "local": unlimited(work, constants),
        "limited": limited(work, constants, **given),
        "ray": on_cluster(work, constants, machines=machines, **given),
    }


def unlimited(work: Work, constants: Constants) -> Cost:
    """Return the cost of the local engine without a memory limit."""
    blocks = ceil(work.lines / constants.widest(work.item))
    width = ceil(work.lines / blocks)
    widths = [last - first for first, last in ranges(work.lines, width)]
    passes = work.hops - 1 + work.last if work.hops else 0
    compute = passes * sum(hop_seconds(work, constants, lines) for lines in widths)
    seconds = compute + (4 * work.nodes * work.features + work.result) / constants.stream
    held = work.graph + work.result + 2 * LINE * width * work.nodes + 12 * work.nodes
    return Cost("local", seconds, held, work.graph, blocks)


def limited(work: Work, constants: Constants, *, memory: int, ram: int) -> Cost:
    """Return the cost of the local engine within a memory limit: a machine that takes one block at a time."""
    one = on_cluster(work, constants, memory=memory, machines=1, ram=ram, fit=1)
    return replace(one, engine="local, limited")


def on_cluster(
    work: Work, constants: Constants, *, memory: int, machines: int, ram: int, fit: int | None = None
) -> Cost:
    """Return the cost on so many machines like this one, whose shared storage is as fast as this disk for each.

    `fit` blocks are computed on one machine at once, by default as many as its memory holds.
    """
    fit = fit or max(1, ram // memory)
    at_once = min(machines * fit, work.lines)
    width = min(block_lines(work, constants, memory), ceil(work.lines / at_once))
    widths = [last - first for first, last in ranges(work.lines, width)]
    busiest = widths[:: min(machines, len(widths))]  # the blocks of the machine that has most
    tasks, held = min(fit, len(busiest)), min(memory, 2 * LINE * width * work.nodes + CHUNKS + 12 * work.rows)
    cached = work.graph <= ram - tasks * held
    seconds = sum(block_seconds(work, constants, lines, cached=cached) for lines in busiest)
    seconds += work.result / constants.disk_read + work.result / constants.disk_write  # to join the blocks
    whole = held + work.adjacency + 4 * work.nodes  # the adjacency is kept where all of it fits
    most = tasks * (whole if whole <= memory else held)
    return Cost("ray", seconds, most, work.graph + 2 * work.result, len(widths), min(at_once, len(widths)))


def check_seconds(work: Work, constants: Constants) -> float:
    """Return the seconds that a command takes to read a graph directory and compare its checksums."""
    return work.graph / min(constants.disk_read, constants.checksum)


def hop_seconds(work: Work, constants: Constants, lines: int) -> float:
    """Return the seconds that one hop of a block of so many lines computes, with all threads of a machine."""
    state = LINE * lines * work.nodes
    return work.entries * constants.seconds_an_entry(lines, state) + 2 * state / constants.stream


def block_seconds(work: Work, constants: Constants, lines: int, *, cached: bool) -> float:
    """Return the seconds for one block on disk: read its features, all hops beside the adjacency, write its part.

    `cached` files are in the system's cache, and reading them is a copy in memory.
    """
    read = constants.stream / 2 if cached else constants.disk_read
    compute, reading = hop_seconds(work, constants, lines), work.adjacency / read
    hops = (work.hops - 1) * max(compute, reading) + max(work.last * compute, reading) if work.hops else 0
    passes = 1 if work.storage == "float32" else 2  # float16 looks for the largest value first
    share = lines / work.lines  # features lie by columns, as the import writes them
    features = passes * 4 * work.nodes * work.features * share / read
    return features + hops + work.result * share / constants.disk_write


def block_lines(work: Work, constants: Constants, memory: int) -> int:
    """Return the lines of a block that fit: two states beside the chunks and the wanted rows."""
    room = memory - min(CHUNKS, memory // 8) - min(2**28, memory // 16) - 12 * work.rows
    lines = min(constants.widest(work.item), work.lines, room // (2 * LINE * work.nodes))
    if lines < 1:
        needed = 2 * LINE * work.nodes + 12 * work.rows
        raise SettingsError(
            f"{format_size(memory)} are too little memory: {work.nodes:,} nodes need at least {format_size(needed)} "
            "for one cache line of features at a time.\nGive more --memory, or fewer rows."
        )
    return ceil(work.lines / ceil(work.lines / lines))


def _along_lines(narrow: Gather, wide: Gather, lines: float) -> float:
    slope = (wide.seconds - narrow.seconds) / (wide.lines - narrow.lines)
    return max(narrow.seconds * min(1.0, lines), narrow.seconds + slope * (lines - narrow.lines))
