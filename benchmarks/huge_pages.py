"""What are huge pages worth to a hop, and who gets them when the memory is full of files?

    python benchmarks/huge_pages.py --json --full-of FILE …

For one state of a block, in rows of one cache line: seconds for an entry of a hop that reads from it, on small pages,
on the pages that the system gives by itself while the given files fill its cache, and on those that the engine asks for
(`gamlp.pages.settled`) in the same plight. `huge` is the share of the state that is on huge pages.
"""

from __future__ import annotations

import argparse
import json
import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.files import Array
from gamlp.machine.measure import seconds_an_entry, state
from gamlp.pages import settled
from gamlp.sizes import parse_size
from gamlp.threads import workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", default="4GiB", help="bytes of the state")
    parser.add_argument("--full-of", type=Path, nargs="*", default=[], help="files that are read, again and again")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    size = parse_size(options.state)
    ways: dict[str, Callable[[], Array]] = {
        "small": lambda: _small(size),
        "left": lambda: state(1, size),
        "settled": lambda: settled(state(1, size)),
    }
    found = {name: measured(make, options.full_of) for name, make in ways.items()}
    result: dict[str, Any] = {"state_bytes": size, "pages": found}
    small, left = (found[name]["seconds_an_entry"] for name in ("small", "left"))
    result["ratios"] = {
        "small_vs_settled": small / found["settled"]["seconds_an_entry"],
        "left_vs_settled": left / found["settled"]["seconds_an_entry"],
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=2))


def measured(make: Callable[[], Array], files: list[Path]) -> dict[str, float]:
    """Return what an entry costs, and how much of the state is on huge pages."""
    before = on_huge_pages()
    with reading(files):
        x = make()
        x[:] = 1
    there = (on_huge_pages() - before) / x.nbytes
    with workers() as run:
        return {"huge": there, "seconds_an_entry": seconds_an_entry(x, run)}


@contextmanager
def reading(files: list[Path]) -> Iterator[None]:
    """Read files into the system's cache once before, and as long as this lasts."""
    full, stop = threading.Event(), threading.Event()

    def read() -> None:
        while files and not stop.is_set():
            for path in files:
                with path.open("rb", buffering=0) as file:
                    while not stop.is_set() and file.read(2**24):
                        pass
            full.set()
        full.set()

    thread = threading.Thread(target=read)
    thread.start()
    full.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


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
