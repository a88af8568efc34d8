"""The facts that embeddings are learned from: (head, relation, tail), checked once, here.

Every check runs over blocks of rows, so memory-mapped columns are never in memory as a whole. Cost: two passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gamlp.errors import FormatError, IdError, InputError, ShapeError
from gamlp.storage.files import Array, digest
from gamlp.storage.threads import ranges

BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Triples:
    """Three columns of T ids, in RAM or memory-mapped: heads and tails below `entities`, relations by their place."""

    heads: Array
    relations: Array
    tails: Array
    entities: int
    relation_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.heads)

    def rows(self, ids: Array) -> tuple[Array, Array, Array]:
        """Return heads, relations and tails of these rows as int64."""
        heads, relations, tails = (column[ids].astype(np.int64) for column in self.columns)
        return heads, relations, tails

    def blocks(self) -> Iterator[tuple[int, Array, Array, Array]]:
        """Yield the first row and the columns of one block after another."""
        for start, stop in ranges(len(self), BLOCK):
            heads, relations, tails = (np.asarray(column[start:stop]) for column in self.columns)
            yield start, heads, relations, tails

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """The three columns, in the order of a triple."""
        return self.heads, self.relations, self.tails

    def fingerprint(self) -> str:
        """Return a hash of everything, by which a checkpoint knows its triples."""
        return digest(*self.columns, str(self.entities), "\n".join(self.relation_names))

    def check(self) -> Triples:
        """Refuse what cannot be learned from; return itself."""
        check_columns(self)
        check_ids(self, "heads", self.heads, self.entities, "entities")
        check_ids(self, "tails", self.tails, self.entities, "entities")
        check_ids(self, "relations", self.relations, len(self.relation_names), "relations")
        check_relations(self)
        return self


def check_columns(triples: Triples) -> None:
    """See that there are triples, in three columns of the same length, of whole numbers."""
    lengths = [column.shape for column in triples.columns]
    if any(len(shape) != 1 for shape in lengths) or len(set(lengths)) != 1:
        raise ShapeError(
            f"heads, relations and tails have the shapes {', '.join(map(str, lengths))}.\n"
            "Each is one column with one id per triple, so all three must be equally long."
        )
    if not len(triples):
        raise InputError("There are no triples.\nEmbeddings are learned from relations between entities; give some.")
    for name, column in zip(("heads", "relations", "tails"), triples.columns, strict=True):
        if column.dtype.kind not in "iu":
            raise FormatError(f"{name} are {column.dtype}.\nIds must be whole numbers (an integer dtype).")
    if triples.entities < 2:
        raise InputError(f"There is {triples.entities} entity.\nAt least two are needed to tell one from another.")


def check_ids(triples: Triples, name: str, column: Array, count: int, of: str) -> None:
    """Refuse ids outside 0 … count−1, naming the first one."""
    for start, stop in ranges(len(triples), BLOCK):
        block = column[start:stop]
        if block.min() < 0 or block.max() >= count:
            at = int(((block < 0) | (block >= count)).argmax())
            raise IdError(
                f"Triple {start + at:,} has {name[:-1]} {int(block[at]):,}, but there are {count:,} {of}.\n"
                f"Ids run from 0 to {count - 1:,}. Were they numbered per node type, and not over all types?"
            )


def check_relations(triples: Triples) -> None:
    """Refuse a relation that no triple uses: nothing could be learned for it."""
    names = triples.relation_names
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"Two relations are called '{double}'.\nGive each relation a name of its own.")
    used = np.zeros(len(names), np.int64)
    for _, _, relations, _ in triples.blocks():
        used += np.bincount(relations, minlength=len(names))
    if not used.all():
        unused = [name for name, count in zip(names, used, strict=True) if not count]
        raise InputError(
            f"{len(unused)} of {len(names)} relations have no triples: {', '.join(unused[:5])}"
            f"{', …' if unused[5:] else ''}.\nLeave them out of relation_names and renumber the others."
        )
