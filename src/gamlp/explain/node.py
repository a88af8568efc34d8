"""The story of one node: what it was given, how far it looked, and which known labels stand around it.

Ring l holds the nodes at distance l. Of each ring the *training* labels are counted by class: what a method could know
of the neighbourhood. The support is the share of the predicted class among them; of several labels a node, that of
nodes with the likeliest label.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice

import numpy as np

from gamlp.errors import IdError
from gamlp.explain.figures.receptive import rings
from gamlp.explain.finished_run import FinishedRun
from gamlp.graph.graph import Graph
from gamlp.storage.files import Array

LIMIT = 20_000_000  # adjacency entries read for one ring at most
TOP = 5  # classes that are named
COMPARED = 100_000  # names compared for a suggestion at most


@dataclass(frozen=True)
class Ring:
    """The nodes at one distance."""

    hop: int
    weight: float | None  # the attention on this hop
    nodes: int
    labelled: int  # how many of them train
    classes: dict[str, int]  # the most frequent classes of these, most frequent first
    support: float | None  # share of the predicted class among these; None where none is labelled


@dataclass(frozen=True)
class NodeStory:
    """All that a run says of one node."""

    name: str
    node: int
    degree: int
    member: str  # train, valid, test, or empty
    label: str | None
    predicted: str
    confidence: float
    top: dict[str, float]  # the most probable classes, most probable first
    rings: list[Ring]
    cut_at: int | None  # the first ring that was too large to look at


def explain_node(run: FinishedRun, text: str) -> NodeStory:
    """Tell the story of the node whose id, as it came in, is `text`."""
    return story_of(run, find_node(run.graph, text), limit=LIMIT)


def story_of(run: FinishedRun, node: int, *, limit: int) -> NodeStory:
    """Tell the story of a node; rings for which more than `limit` entries would be read are left out."""
    place = int(np.searchsorted(run.rows, node))
    if place == len(run.rows) or run.rows[place] != node:
        raise IdError(
            f"Node '{run.name_of(node)}' is in the graph, but this run predicts only the {len(run.rows):,} nodes of "
            "its split.\n"
            "Train with --set rows=all to predict every node."
        )
    chances, at = run.probabilities[place], slice(place, place + 1)
    best = np.argsort(-chances, kind="stable")[:TOP]
    weights = None if run.attention is None else run.attention[place]
    around, cut_at = rings_of(run, node, int(best[0]), weights, limit)
    return NodeStory(
        name=run.name_of(node),
        node=node,
        degree=int(run.degrees[place]),
        member=next((name for name in ("train", "valid", "test") if np.isin(node, getattr(run.split, name))), ""),
        label=run.words(run.labels[at])[0],
        predicted=str(run.words(run.predicted[at])[0]),
        confidence=float(run.confidence[place]),
        top={run.classes[number]: float(chances[number]) for number in best},
        rings=around,
        cut_at=cut_at,
    )


def rings_of(
    run: FinishedRun, node: int, predicted: int, weights: Array | None, limit: int
) -> tuple[list[Ring], int | None]:
    """Count the training labels around a node, as far as it looks: K hops, or 2 where hops are not weighed."""
    hops = 2 if weights is None else len(weights) - 1
    known, found = run.known, []
    for hop, ids in enumerate(rings(run.graph.adjacency, node, hops=hops, limit=limit)):
        labels = known[ids]
        counts = np.array([len(rows) for rows in run.kind.rows_of(labels, len(run.classes))])
        labelled = int(run.kind.known(labels).sum())
        order = [number for number in np.argsort(-counts, kind="stable")[:TOP] if counts[number]]
        classes = {run.classes[number]: int(counts[number]) for number in order}
        support = int(counts[predicted]) / labelled if labelled else None
        found.append(Ring(hop, None if weights is None else float(weights[hop]), len(ids), labelled, classes, support))
    return found, None if len(found) > hops else len(found)


def find_node(graph: Graph, text: str, *, compared: int = COMPARED) -> int:
    """Return the node with this id; an unknown one is answered with the ids most like it, of some that begin alike."""
    if graph.names is None:
        if text.isdecimal() and int(text) < graph.nodes:
            return int(text)
        raise IdError(f"There is no node '{text}'.\nThe nodes are numbered from 0 to {graph.nodes - 1:,}.")
    if graph.names.dtype.kind in "iu":
        matches = np.flatnonzero(graph.names == int(text)) if text.lstrip("-").isdecimal() else np.zeros(0, int)
    else:
        matches = np.flatnonzero(graph.names == text)
    if len(matches):
        return int(matches[0])
    raise IdError(f"There is no node '{text}' among the {graph.nodes:,}.\n{suggestion(text, graph.names, compared)}")


def suggestion(text: str, names: Array, compared: int) -> str:
    """Say which names are like `text`: of very many, those that begin alike are compared."""
    alike = (name for name in map(str, names) if len(names) <= compared or name.startswith(text[:2]))
    if close := difflib.get_close_matches(text, list(islice(alike, compared)), n=3, cutoff=0.6):
        return f"Did you mean {' or '.join(repr(name) for name in close)}?"
    return f"Ids look like this: {', '.join(str(name) for name in names[:3])}."
