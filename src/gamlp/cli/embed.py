"""gamlp embed: embeddings for the nodes of a graph, learned from its relations alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.options import ComputeOptions, GraphOptions, Json, Seed, Set, given_options, overrides, spelled_out
from gamlp.cli.screen import say
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.embed import Embeddings, Scores, Triples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: gamlp embed debian-hetero -o embeddings --set dimension=128")(spelled_out(embed))


def embed(
    graph: GraphOptions,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder for the embeddings; called again, it goes on where it was.")
    ],
    set_: Set = None,
    seed: Seed = 0,
    compute: ComputeOptions,
    json: Json = False,
) -> None:
    """Learn a vector for every node from the relations alone (ComplEx or TransE), and say how well.

    GRAPH may also be a folder of triples: heads.npy, relations.npy, tails.npy and triples.json.
    """
    import time

    from gamlp.embed import embedding_settings_from, train_embeddings

    refuse_unused()
    settings = embedding_settings_from(overrides(set_))
    started = time.perf_counter()
    with common.shown_progress(f"The same command goes on from the last checkpoint in {out}."):
        triples = read_triples(graph)
        found = train_embeddings(triples, settings, seed=seed, folder=out)
    seconds = time.perf_counter() - started
    if json:
        common.print_json(facts(found, triples, out, seconds))
    else:
        say(summary(found, triples, out))


def refuse_unused() -> None:
    """Refuse options that change nothing here: embeddings are learned in memory, from the edges alone."""
    for name, spelled in given_options().items():
        if name in ("engine", "memory", "address", "cache", "device", "features"):
            raise SettingsError(
                f"{spelled} was given, and embeddings are learned in memory, on the processor, from edges alone.\n"
                "Leave it out."
            )


def read_triples(graph: GraphOptions) -> Triples:
    """Read a folder of triples, or any graph."""
    from gamlp.embed import load_triples, triples_from

    if graph.what and len(graph.what) == 1 and (Path(graph.what[0]) / "triples.json").is_file():
        return load_triples(Path(graph.what[0]))
    return triples_from(common.read_source(graph.source()))


def facts(found: Embeddings, triples: Triples, out: Path, seconds: float) -> dict[str, Any]:
    """Return the one result as JSON has it."""
    return {
        "out": str(out), "entities": triples.entities, "triples": len(triples),
        "relations": list(triples.relation_names), "seed": found.seed, "settings": found.settings.model_dump(),
        "scores": asdict(found.scores) if found.scores else None, "seconds": seconds,
    }  # fmt: skip


def summary(found: Embeddings, triples: Triples, out: Path) -> str:
    """Say what was learned, beside what guessing would give."""
    first = (
        f"{out}: {triples.entities:,} entities and {len(triples.relation_names)} relations, "
        f"{found.settings.dimension} numbers each, from {len(triples):,} triples."
    )
    return f"{first}\n{verdict(found.scores)}"


def verdict(scores: Scores | None) -> str:
    """Put the scores of held-out triples into words."""
    if scores is None:
        return "No triple could be held out, so nothing says how well they were learned."
    return (
        f"{scores.triples:,} held-out triples, filtered: MRR {scores.mrr:.4f} (chance {scores.chance.mrr:.4f}), "
        f"hits@1 {scores.hits_at_1:.3f}, hits@3 {scores.hits_at_3:.3f}, hits@10 {scores.hits_at_10:.3f} "
        f"(chance {scores.chance.hits_at_10:.4f})."
    )
