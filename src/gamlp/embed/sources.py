"""Where triples come from: a graph's relations, or a folder of three arrays that are mapped, not read.

    heads.npy, relations.npy, tails.npy     (T,) of any integer type
    triples.json                            {"format": 1, "entities": N, "relation_names": [...]}

A plain graph has one relation, in which each edge stands once, from the lower node to the higher.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gamlp.embed.triples import Triples
from gamlp.errors import FormatError, InputError
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.storage.files import read_array, read_json, write_array, write_json

FORMAT = 1
COLUMNS = ("heads", "relations", "tails")


def triples_from(graph: Graph) -> Triples:
    """Return the relations of a graph as triples over all its nodes; relations without edges are left out."""
    if isinstance(graph, HeteroGraph):
        used = [one for one in graph.relations if len(one.heads)]
        parts = [(one.name, one.heads, one.tails) for one in used]
    else:
        if graph.adjacency.weights is not None:
            raise InputError(
                "The edges have weights, and triples have none: an edge is there or not.\n"
                "Leave the weight column out of the edge list, or the weights out of the adjacency."
            )
        rows = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
        once = rows < graph.adjacency.indices
        parts = [("edge", rows[once], graph.adjacency.indices[once])]
    empty = np.zeros(0, np.int64)
    return Triples(
        heads=np.concatenate([empty, *(heads for _, heads, _ in parts)]),
        relations=np.repeat(np.arange(len(parts)), [len(heads) for _, heads, _ in parts]),
        tails=np.concatenate([empty, *(tails for _, _, tails in parts)]),
        entities=graph.nodes,
        relation_names=tuple(name for name, _, _ in parts),
    )


def is_triples_folder(folder: Path) -> bool:
    """Tell whether the folder holds triples."""
    return (folder / "triples.json").is_file()


def load_triples(folder: Path) -> Triples:
    """Map the triples of a folder; they are checked when they are trained on."""
    facts = read_json(folder / "triples.json")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FormatError(f"{folder / 'triples.json'} does not say format {FORMAT}.\nThis version reads that one only.")
    entities, names = facts.get("entities"), facts.get("relation_names")
    if not isinstance(entities, int) or not isinstance(names, list):
        raise FormatError(
            f"{folder / 'triples.json'} lacks the number of entities, or the names of the relations.\n"
            'Expected: {"format": 1, "entities": 100, "relation_names": ["cites"]}.'
        )
    heads, relations, tails = (read_array(folder / f"{name}.npy", memory_map=True) for name in COLUMNS)
    return Triples(heads, relations, tails, entities, tuple(str(name) for name in names))


def save_triples(triples: Triples, folder: Path) -> None:
    """Write triples to a folder; the JSON file comes last."""
    for name, column in zip(COLUMNS, triples.columns, strict=True):
        write_array(folder / f"{name}.npy", column)
    facts = {"format": FORMAT, "entities": triples.entities, "relation_names": list(triples.relation_names)}
    write_json(folder / "triples.json", facts)
