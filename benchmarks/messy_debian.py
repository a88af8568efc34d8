"""`debian` as somebody would have it in a spreadsheet: raw descriptions, maintainers, sizes, dates, and gaps.

    python benchmarks/messy_debian.py FOLDER [--index Packages]

writes edges.csv (package, needs) and nodes.csv: the one-line description as it is, the maintainer, architecture,
priority and homepage in words, sizes, the date of the snapshot that some versions name, a checksum, and many empty
fields; the label is the section, the split that of `debian`. The fields are read from the package index that apt left
on this machine, or from a Packages file (scripts/make_debian.py tells which). Without either, the description is the
words that `debian` ships, in alphabetical order, and the maintainer that of `debian-hetero`; all else is left out.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.util
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.readers.debian import (
    KINDS,
    load_debian,
    read_parts,
    read_stored,
    unpack_names,
    unpack_rows,
)

FIELDS = {
    "description": "Description", "maintainer": "Maintainer", "architecture": "Architecture", "priority": "Priority",
    "multi_arch": "Multi-Arch", "essential": "Essential", "homepage": "Homepage", "installed_size": "Installed-Size",
    "size": "Size", "md5sum": "MD5sum",
}  # fmt: skip
SNAPSHOT = re.compile(r"((?:19|20)\d\d)([01]\d)([0-3]\d)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index", help="a plain Packages file")
    arguments = parser.parse_args()
    print(write_debian(arguments.folder, arguments.index))


def write_debian(folder: Path, index: str | None = None) -> str:
    """Write both files; return what the descriptions are."""
    graph, stored = load_debian(), read_stored("debian.npz")
    names = unpack_names(stored["names"]).tolist()
    folder.mkdir(parents=True, exist_ok=True)
    ends = [unpack_rows(stored, kind) for kind in KINDS]
    write(
        folder / "edges.csv",
        ["package", "needs"],
        ((names[a], names[b]) for both in ends for a, b in zip(*both, strict=True)),
    )
    try:
        columns, what = from_index(names, index), "raw descriptions"
    except (SystemExit, OSError):
        columns, what = from_shipped(stored), "the shipped words, no raw descriptions: there is no package index here"
    sets = np.full(graph.nodes, "", dtype=object)
    for word, ids in graph.split.sets.items():
        sets[ids] = word
    columns |= {"label": [graph.classes[label] for label in graph.labels], "split": sets.tolist()}
    write(folder / "nodes.csv", ["package", *columns], zip(names, *columns.values(), strict=True))
    return what


def from_index(names: list[str], index: str | None) -> dict[str, list[str]]:
    """Return the fields of each package as they stand in the index."""
    path = Path(__file__).parents[1] / "scripts" / "make_debian.py"
    spec = importlib.util.spec_from_file_location("make_debian", path)
    assert spec is not None and spec.loader is not None
    make: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    packages = make.read_packages(make.read_index(index))
    columns = {column: [packages.get(name, {}).get(field, "") for name in names] for column, field in FIELDS.items()}
    return columns | {"snapshot": [snapshot(packages.get(name, {}).get("Version", "")) for name in names]}


def snapshot(version: str) -> str:
    """Return the day that a version names, as 0.1~git20200131 does, or nothing."""
    found = SNAPSHOT.search(version)
    try:
        return "" if found is None else datetime.date(*map(int, found.groups())).isoformat()
    except ValueError:
        return ""


def from_shipped(stored: dict[str, Any]) -> dict[str, list[str]]:
    """Return what the package ships: words, and maintainers."""
    words, (package, word) = unpack_names(stored["words"]), unpack_rows(stored, "word")
    counts = stored["word_counts"].astype(np.int64)
    ends = np.searchsorted(package, np.arange(len(stored["labels"]) + 1))
    each = [" ".join(np.repeat(words[word[a:b]], counts[a:b])) for a, b in pairwise(ends)]
    parts = read_parts()
    who = parts.names["maintainer"][parts.relations["maintained_by"][1]]
    return {"description": each, "maintainer": who.tolist()}


def write(path: Path, header: list[str], rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
