"""Make the data set `debian` from the package index that apt keeps on a Debian machine.

    python scripts/make_debian.py                 # the index that `apt-get update` left on this machine
    python scripts/make_debian.py Packages        # a plain Packages file
    python scripts/make_debian.py - < Packages

Nodes are the binary packages of the index, in the order of their names. The same index gives the same bytes. What is
stored, and how small numbers are packed, stands in `readers.debian`, which reads it back; docs/debian.md tells what
the graph is. A summary goes to the standard output.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from gamlp.graph.readers.debian import popularity, split_by_popularity, unpack_names, unpack_rows
from gamlp.storage.files import Array

Fields = dict[str, str]
Rows = list[list[int]]

LISTS = Path("/var/lib/apt/lists")
HELPER = "/usr/lib/apt/apt-helper"
DATA = Path(__file__).parents[1] / "src" / "gamlp" / "graph" / "data"
KINDS = {
    "depends": ("Depends", "Pre-Depends"),
    "recommends": ("Recommends",),
    "suggests": ("Suggests", "Enhances"),
}
MOST_PROVIDERS = 5
FEWEST_PACKAGES = 3
"""A word stands in at least so many descriptions, or it is left out."""


def main() -> None:
    """Read the index, write both files, print what they hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", nargs="?", help="a plain Packages file, or - for the standard input")
    parser.add_argument("--out", type=Path, default=DATA, help="the folder to write to")
    arguments = parser.parse_args()
    packages = read_packages(read_index(arguments.index))
    homogeneous, heterogeneous = make_graph(packages), make_twin(packages)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, arrays in (("debian.npz", homogeneous), ("debian-hetero.npz", heterogeneous)):
        write_npz(arguments.out / name, arrays)
        print(f"{name}: {(arguments.out / name).stat().st_size:,} bytes")
    summarise(homogeneous, heterogeneous)


# Reading


def read_index(source: str | None) -> str:
    """Return the text of the index: of a file, of the standard input, or of what apt has fetched."""
    if source == "-":
        return sys.stdin.buffer.read().decode()
    if source is not None:
        return Path(source).read_text(encoding="utf-8")
    found = sorted(LISTS.glob("*_main_binary-amd64_Packages*"))
    if not found:
        sys.exit(f"No package index in {LISTS}.\nRun `apt-get update` first, or give a Packages file.")
    return subprocess.run([HELPER, "cat-file", *map(str, found)], check=True, capture_output=True).stdout.decode()


def read_packages(text: str) -> dict[str, Fields]:
    """Return the fields of each package, by name, in the order of the names; of two versions the last listed stays."""
    packages = {fields["Package"]: fields for fields in map(read_fields, re.split(r"\n\s*\n", text.strip()))}
    return dict(sorted(packages.items()))


def read_fields(stanza: str) -> Fields:
    """Split one stanza into fields; a line that begins with a blank continues the field above."""
    fields: Fields = {}
    for line in re.sub(r"\n[ \t]+", " ", stanza).split("\n"):
        key, _, value = line.partition(":")
        fields[key] = value.strip()
    return fields


def names_in(value: str) -> Iterator[str]:
    """Yield every package that a relation field names, alternatives too, without versions and architectures."""
    for item in re.split(r"[,|]", value):
        name = re.split(r"[\s(:\[]", item.strip(), maxsplit=1)[0]
        if name:
            yield name


# The graph


def make_graph(packages: Mapping[str, Fields]) -> dict[str, Array]:
    """Return the arrays of debian.npz: names, sections, words and the three kinds of edges."""
    sections = [fields["Section"].rpartition("/")[2] for fields in packages.values()]
    classes, labels = number(sections)
    vocabulary, words, counts = words_of([fields.get("Description", "") for fields in packages.values()])
    arrays = {
        "names": pack_names(packages),
        "classes": pack_names(classes),
        "labels": small(labels),
        "words": pack_names(vocabulary),
        "word_counts": small(counts),
        **pack_rows("word", words),
    }
    targets = Targets(packages)
    for kind, keys in KINDS.items():
        arrays |= pack_rows(kind, [targets.of(name, fields, keys) for name, fields in packages.items()])
    return arrays


class Targets:
    """Who is meant by a name in a relation: the package itself, or up to five that provide it."""

    def __init__(self, packages: Mapping[str, Fields]) -> None:
        self.ids = {name: number for number, name in enumerate(packages)}
        self.providers: defaultdict[str, set[int]] = defaultdict(set)
        for name, fields in packages.items():
            for virtual in names_in(fields.get("Provides", "")):
                self.providers[virtual].add(self.ids[name])

    def of(self, name: str, fields: Fields, keys: Sequence[str]) -> list[int]:
        """Return the sorted ids of all that `name` points to in these fields; never itself."""
        found: set[int] = set()
        for named in names_in(",".join(fields.get(key, "") for key in keys)):
            if named in self.ids:
                found.add(self.ids[named])
            elif len(self.providers.get(named, ())) <= MOST_PROVIDERS:
                found |= self.providers.get(named, set())
        return sorted(found - {self.ids[name]})


def words_of(descriptions: Sequence[str]) -> tuple[list[str], Rows, list[int]]:
    """Return the vocabulary, the sorted word ids of each description, and how often each stands there."""
    bags = [Counter(re.findall(r"[a-z0-9]{2,}", text.lower())) for text in descriptions]
    spread = Counter(word for bag in bags for word in bag)
    vocabulary = sorted(word for word, count in spread.items() if count >= FEWEST_PACKAGES)
    ids = {word: number for number, word in enumerate(vocabulary)}
    rows = [sorted((ids[word], count) for word, count in bag.items() if word in ids) for bag in bags]
    return vocabulary, [[word for word, _ in row] for row in rows], [count for row in rows for _, count in row]


# The heterogeneous twin


def make_twin(packages: Mapping[str, Fields]) -> dict[str, Array]:
    """Return the arrays of debian-hetero.npz: maintainers (names without addresses), source packages and tags."""
    everyone = packages.values()
    maintainers, maintained_by = number([fields["Maintainer"].partition("<")[0].strip(' "') for fields in everyone])
    sources, built_from = number([fields.get("Source", name).partition(" ")[0] for name, fields in packages.items()])
    tags = [set(tags_in(fields.get("Tag", ""))) for fields in everyone]
    known = sorted(set().union(*tags))
    ids = {tag: number for number, tag in enumerate(known)}
    return {
        "maintainers": pack_names(maintainers),
        "sources": pack_names(sources),
        "tags": pack_names(known),
        "maintained_by": small(maintained_by),
        "built_from": small(built_from),
        **pack_rows("has_tag", [sorted(ids[tag] for tag in row) for row in tags]),
    }


def tags_in(value: str) -> Iterator[str]:
    """Yield the tags of a Tag field; `role::{a,b}` is short for two."""
    for facet, several, one in re.findall(r"([^\s,{}]+::)(?:\{([^}]*)\}|([^\s,{}]+))", value):
        for tag in several.split(",") if several else [one]:
            yield facet + tag.strip()


# Packing: what `readers.debian` undoes


def number(values: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the distinct values in order, and the number of each."""
    distinct = sorted(set(values))
    ids = {value: number for number, value in enumerate(distinct)}
    return distinct, [ids[value] for value in values]


def pack_names(names: Iterable[str]) -> Array:
    """Join names by line ends, as bytes."""
    return np.frombuffer("\n".join(names).encode(), dtype=np.uint8)


def pack_rows(name: str, rows: Rows) -> dict[str, Array]:
    """Store rows of rising ids as their lengths, and each id as its distance from the one before."""
    steps = [step for row in rows for step in (after - before for before, after in pairwise([0, *row]))]
    return {f"{name}_lengths": small([len(row) for row in rows]), f"{name}_steps": small(steps)}


def small(values: Sequence[int]) -> Array:
    """Take the smallest unsigned type that holds all values."""
    return np.array(values, dtype=np.min_scalar_type(max(values, default=0)))


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write what numpy.savez_compressed would, without the time of day."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED, 9)


# Saying what came out


def summarise(homogeneous: Mapping[str, Array], heterogeneous: Mapping[str, Array]) -> None:
    """Print the sizes, and how the three sets differ."""
    classes = unpack_names(homogeneous["classes"])
    labels = homogeneous["labels"]
    print(f"packages: {len(labels):,}, sections: {len(classes)}")
    ends = [unpack_rows(homogeneous, kind) for kind in KINDS]
    count = popularity(ends, len(labels))
    split = split_by_popularity(count)
    for kind, (source, _) in zip(KINDS, ends, strict=True):
        print(f"{kind}: {len(source):,}")
    pairs = np.unique(np.sort(np.hstack([np.stack(end) for end in ends]), axis=0), axis=1)
    print(f"joined pairs: {pairs.shape[1]:,}, packages alone: {len(labels) - len(np.unique(pairs)):,}")
    print(f"words: {len(unpack_names(homogeneous['words'])):,}, entries: {len(homogeneous['word_counts']):,}")
    for key in ("maintainers", "sources", "tags"):
        print(f"{key}: {len(unpack_names(heterogeneous[key])):,}")
    print(f"has_tag: {len(heterogeneous['has_tag_steps']):,}")
    for name, ids in (("train", split.train), ("valid", split.valid), ("test", split.test)):
        shares = np.bincount(labels[ids], minlength=len(classes)) / len(ids)
        most = ", ".join(f"{classes[label]} {shares[label]:.1%}" for label in np.argsort(-shares)[:5])
        low, high = count[ids].min(), count[ids].max()
        print(f"{name}: {len(ids):,} packages, {low:,} to {high:,} ask for each; {most}")
    unseen = np.setdiff1d(np.arange(len(classes)), labels[split.train])
    print(f"sections without a training package: {', '.join(classes[unseen]) or 'none'}")


if __name__ == "__main__":
    main()
