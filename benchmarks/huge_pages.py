"""What are huge pages worth to a hop, and who gets them when the memory is full of files?

    python benchmarks/huge_pages.py --json --full-of FILE

For one state of a block, in rows of one cache line: seconds for an entry of a hop that reads from it, on small pages,
on the pages that the system gives by itself, and on those that the engine asks for (`huge_pages.prefaulted`). The file,
larger than the memory, is read before each, and again beside filling the state, as features are. `huge` is the share of
the state that is on huge pages. Times are medians of five turns.
"""

from __future__ import annotations

import argparse
import json
import mmap
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.machine.measure import seconds_an_entry, state
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import prefaulted
from gamlp.storage.sizes import parse_size
from gamlp.storage.threads import ranges, workers

PIECE = 2**24  # bytes read and written in turn
TURNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", default="3GiB", help="bytes of the state")
    parser.add_argument("--full-of", type=Path, required=True, help="a large file")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    size = parse_size(options.state)
    ways: dict[str, Callable[[], Array]] = {
        "small": lambda: _small(size),
        "left": lambda: state(1, size),
        "prefaulted": lambda: prefaulted(state(1, size)),
    }
    states, huge = {}, {}
    for name, make in ways.items():
        before = on_huge_pages()
        states[name] = filled(make, options.full_of)
        huge[name] = (on_huge_pages() - before) / size
    with workers() as run:
        turns = [{name: seconds_an_entry(x, run) for name, x in states.items()} for _ in range(TURNS)]
    seconds = {name: statistics.median(turn[name] for turn in turns) for name in states}
    result: dict[str, Any] = {
        "state_bytes": size,
        "pages": {name: {"huge": huge[name], "seconds_an_entry": seconds[name]} for name in states},
        "ratios": {f"{name}_vs_settled": seconds[name] / seconds["prefaulted"] for name in ("small", "left")},
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=2))


def filled(make: Callable[[], Array], path: Path) -> Array:
    """Return a state that was written to while a file was read, with the cache full of it."""
    with path.open("rb", buffering=0) as file:
        while file.read(PIECE):
            pass
        file.seek(0)
        x = make()
        for first, last in ranges(len(x), PIECE // x[:1].nbytes):
            file.read(PIECE)
            x[first:last] = 1
    return x


def on_huge_pages() -> int:
    """Return the bytes of this process that are on huge pages."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return int(text.split("AnonHugePages:")[1].split()[0]) * 1024


def _small(size: int) -> Array:
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.float32).reshape(-1, 16)


if __name__ == "__main__":
    main()
