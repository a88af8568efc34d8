"""gamlp embed: embeddings for the nodes of a graph, learned from its relations alone."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from gamlp.cli.begin import read_source
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, Seed, Set, if_interrupted, overrides, refuse

if TYPE_CHECKING:
    from gamlp.embed import Scores, Triples

UNUSED = "{option} was given, and embeddings are learned in memory, on the processor, from edges alone.\nLeave it out."


def embed(
    graph: GraphOptions,
    *,
    out: Annotated[
        Path, Option("--out", "-o", help="The folder for the embeddings; called again, it goes on where it was.")
    ],
    set_: Set = None,
    seed: Seed = 0,
    compute: ComputeOptions,
) -> Answer:
    """Learn a vector for every node from the relations alone (ComplEx or TransE), and say how well.

    GRAPH may also be a folder of triples: heads.npy, relations.npy, tails.npy and triples.json.
    """
    from gamlp.embed import embedding_settings_from, train_embeddings

    refuse(UNUSED, only=("engine", "memory", "address", "cache", "device", "features"))
    settings = embedding_settings_from(overrides(set_))
    started = time.perf_counter()
    if_interrupted(f"The same command goes on from the last checkpoint in {out}.")
    triples = read_triples(graph)
    found = train_embeddings(triples, settings, seed=seed, folder=out)
    words = (
        f"{out}: {triples.entities:,} entities and {len(triples.relation_names)} relations, "
        f"{found.settings.dimension} numbers each, from {len(triples):,} triples.\n{verdict(found.scores)}"
    )
    return {
        "out": str(out), "entities": triples.entities, "triples": len(triples),
        "relations": list(triples.relation_names), "seed": found.seed, "settings": found.settings.model_dump(),
        "scores": asdict(found.scores) if found.scores else None, "seconds": time.perf_counter() - started,
    }, words  # fmt: skip


def read_triples(graph: GraphOptions) -> Triples:
    """Read a folder of triples, or any graph."""
    from gamlp.embed import load_triples, triples_from

    if graph.what and len(graph.what) == 1 and (Path(graph.what[0]) / "triples.json").is_file():
        return load_triples(Path(graph.what[0]))
    return triples_from(read_source(graph.source()))


def verdict(scores: Scores | None) -> str:
    """Put the scores of held-out triples into words, beside what guessing would give."""
    if scores is None:
        return "No triple could be held out, so nothing says how well they were learned."
    return (
        f"{scores.triples:,} held-out triples, filtered: MRR {scores.mrr:.4f} (chance {scores.chance.mrr:.4f}), "
        f"hits@1 {scores.hits_at_1:.3f}, hits@3 {scores.hits_at_3:.3f}, hits@10 {scores.hits_at_10:.3f} "
        f"(chance {scores.chance.hits_at_10:.4f})."
    )
