"""The facts that embeddings are learned from: (head, relation, tail), of a graph or of a folder of mapped arrays.

    heads.npy, relations.npy, tails.npy     (T,) of any integer type
    triples.json                            {"format": 1, "entities": N, "relation_names": [...]}

They are checked once, here, over blocks of rows, so mapped columns are never in memory as a whole. Cost: two passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gamlp.errors import FormatError, IdError, InputError, ShapeError
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.storage.files import Array, digest, read_array, read_json, write_array, write_json
from gamlp.storage.threads import ranges

FORMAT = 1
COLUMNS = ("heads", "relations", "tails")
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

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """The three columns, in the order of a triple."""
        return self.heads, self.relations, self.tails

    def rows(self, ids: Array) -> tuple[Array, Array, Array]:
        """Return heads, relations and tails of these rows as int64."""
        heads, relations, tails = (column[ids].astype(np.int64) for column in self.columns)
        return heads, relations, tails

    def blocks(self) -> Iterator[tuple[int, Array, Array, Array]]:
        """Yield the first row and the columns of one block after another."""
        for start, stop in ranges(len(self), BLOCK):
            heads, relations, tails = (np.asarray(column[start:stop]) for column in self.columns)
            yield start, heads, relations, tails

    def relation_counts(self) -> Array:
        """Return how many triples each relation has."""
        counts = np.zeros(len(self.relation_names), np.int64)
        for _, _, relations, _ in self.blocks():
            counts += np.bincount(relations, minlength=len(counts))
        return counts

    def fingerprint(self) -> str:
        """Return a hash of everything, by which a checkpoint knows its triples."""
        return digest(*self.columns, str(self.entities), "\n".join(self.relation_names))

    def check(self) -> Triples:
        """Refuse what cannot be learned from; return itself."""
        check_columns(self)
        check_ids(self)
        check_relations(self)
        return self


def triples_from(graph: Graph) -> Triples:
    """Return a graph's relations as triples over all its nodes; relations without edges are left out."""
    if isinstance(graph, HeteroGraph):
        parts = [(one.name, one.heads, one.tails) for one in graph.relations if len(one.heads)]
    elif graph.adjacency.weights is not None:
        raise InputError(
            "The edges have weights, and triples have none: an edge is there or not.\n"
            "Leave the weight column out of the edge list, or the weights out of the adjacency."
        )
    else:  # one relation, in which each edge stands once, from the lower node to the higher
        rows = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
        once = rows < graph.adjacency.indices
        parts = [("edge", rows[once], graph.adjacency.indices[once])]
    empty = np.zeros(0, np.int64)
    heads = np.concatenate([empty, *(heads for _, heads, _ in parts)])
    tails = np.concatenate([empty, *(tails for _, _, tails in parts)])
    relations = np.repeat(np.arange(len(parts)), [len(heads) for _, heads, _ in parts])
    return Triples(heads, relations, tails, graph.nodes, tuple(name for name, _, _ in parts))


def load_triples(folder: Path) -> Triples:
    """Map the triples of a folder; they are checked when they are trained on."""
    path = folder / "triples.json"
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FormatError(f"{path} does not say format {FORMAT}.\nThis version reads that one only.")
    entities, names = facts.get("entities"), facts.get("relation_names")
    if not isinstance(entities, int) or not isinstance(names, list):
        raise FormatError(
            f"{path} lacks the number of entities, or the names of the relations.\n"
            'Expected: {"format": 1, "entities": 100, "relation_names": ["cites"]}.'
        )
    heads, relations, tails = (read_array(folder / f"{name}.npy", memory_map=True) for name in COLUMNS)
    return Triples(heads, relations, tails, entities, tuple(map(str, names)))


def save_triples(triples: Triples, folder: Path) -> None:
    """Write triples to a folder; the JSON file comes last."""
    for name, column in zip(COLUMNS, triples.columns, strict=True):
        write_array(folder / f"{name}.npy", column)
    facts = {"format": FORMAT, "entities": triples.entities, "relation_names": list(triples.relation_names)}
    write_json(folder / "triples.json", facts)


def check_columns(triples: Triples) -> None:
    """See that there are triples, in three columns of the same length, of whole numbers."""
    shapes = [column.shape for column in triples.columns]
    if any(len(shape) != 1 for shape in shapes) or len(set(shapes)) != 1:
        raise ShapeError(
            f"heads, relations and tails have the shapes {', '.join(map(str, shapes))}.\n"
            "Each is one column with one id per triple, so all three must be equally long."
        )
    if not len(triples):
        raise InputError("There are no triples.\nEmbeddings are learned from relations between entities; give some.")
    for name, column in zip(COLUMNS, triples.columns, strict=True):
        if column.dtype.kind not in "iu":
            raise FormatError(f"{name} are {column.dtype}.\nIds must be whole numbers (an integer dtype).")
    if triples.entities < 2:
        raise InputError(f"There is {triples.entities} entity.\nAt least two are needed to tell one from another.")


def check_ids(triples: Triples) -> None:
    """Refuse ids outside 0 … count−1, naming the first one."""
    entities, relations = (triples.entities, "entities"), (len(triples.relation_names), "relations")
    for start, *columns in triples.blocks():
        for name, column, (count, of) in zip(COLUMNS, columns, (entities, relations, entities), strict=True):
            if column.min() < 0 or column.max() >= count:
                at = int(((column < 0) | (column >= count)).argmax())
                raise IdError(
                    f"Triple {start + at:,} has {name[:-1]} {int(column[at]):,}, but there are {count:,} {of}.\n"
                    f"Ids run from 0 to {count - 1:,}. Were they numbered per node type, and not over all types?"
                )


def check_relations(triples: Triples) -> None:
    """Refuse a relation that no triple uses: nothing could be learned for it."""
    names = triples.relation_names
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"Two relations are called '{double}'.\nGive each relation a name of its own.")
    if unused := [name for name, count in zip(names, triples.relation_counts(), strict=True) if not count]:
        raise InputError(
            f"{len(unused)} of {len(names)} relations have no triples: {', '.join(unused[:5])}"
            f"{', …' if unused[5:] else ''}.\nLeave them out of relation_names and renumber the others."
        )
