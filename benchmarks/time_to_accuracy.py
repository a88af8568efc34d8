"""Seconds until a validation accuracy: gamlp's default and plain rows beside PyG's GCN, GraphSAGE and SIGN.

    python benchmarks/time_to_accuracy.py --root DATA --record benchmarks/recorded/time_to_accuracy.json
    python benchmarks/time_to_accuracy.py --root DATA --graphs cora,photo --seeds 1 --threads 1 --json

PyG's networks are written here from its public layers and trained as its examples do (`PEERS`), on the same graphs,
splits and threads: gcn.py, sign.py, and GraphSAGE with the rates of reddit.py, but on the whole graph and narrower, as
these are small. Every system of a graph takes its turn before the next seed begins. Counted is the processor time of
this process, all threads, from features to predictions: scaling, propagation and PyG's transforms are in it, reading
the graph, imports, the loading of compiled kernels and the peers' look at test nodes are not. On an idle machine with
one thread it is what a clock shows; on a shared one it hardly feels the neighbours.

    to_best     seconds until a system has its own best validation accuracy, median over the seeds
    to_peer     seconds until gamlp's default has that accuracy; null where it never has
    ratios      to_peer / to_best of PyG's: above 2 the peer is more than twice as quick

--record puts the rows of a graph into the file as soon as it is done, beside those of other graphs that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Any

GRAPHS = ("cora", "citeseer", "pubmed", "photo", "computers", "cs", "physics", "debian")
OURS = {"default": None, "gamlp-jk": "gamlp-jk", "sign": "sign", "sgc": "sgc"}
PEERS = {  # hidden, learning rate, weight decay of the first layer, epochs
    "PyG GCN": (16, 0.01, 5e-4, 200),
    "PyG GraphSAGE": (64, 0.01, 0.0, 200),
    "PyG SIGN": (1024, 0.001, 0.0, 200),
}
DEFAULT = "default"
NEAR = 5e-5  # our progress has two decimals of a per cent
CITATION = ("cora", "citeseer", "pubmed")
SIGN_HOPS, SIGN_BATCH = 2, 16 * 1024
LARGEST_MESSAGES = 2**33  # bytes
Curve = list[tuple[float, float, float]]  # seconds, validation accuracy, test accuracy, at each evaluation


def main() -> None:
    options = arguments()
    os.environ |= {"OMP_NUM_THREADS": str(options.threads), "NUMBA_NUM_THREADS": str(options.threads)}
    result = measure(options)
    if options.record:
        return
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for row in result["rows"]:
        print(
            f"{row['graph']:10s} {row['system']:14s} {row['seconds']:8.1f} s, valid {100 * row['valid']:.2f}", end=" "
        )
        print(f"after {shown(row['to_best'])}, test {100 * row['test']:.2f}; default: {shown(row.get('to_peer'))}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="the folder with the data sets")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--systems", default=",".join([*OURS, *PEERS]))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--most", type=float, default=600, help="seconds after which a peer's training is cut short")
    parser.add_argument("--record", type=Path, help="the file that the rows are put into")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return parser.parse_args()


def shown(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Train every system on every graph, seed by seed in turns."""
    import torch

    from gamlp.graph.readers.source import GraphSource
    from gamlp.machine.facts import machine_facts

    torch.set_num_threads(options.threads)
    facts = machine_facts(Path.cwd())
    machine = {key: facts[key] for key in ("processor", "processors", "system")}
    machine |= {"threads": options.threads, "torch": torch.__version__}
    rows: list[dict[str, Any]] = []
    if options.record and options.record.exists():
        rows = json.loads(options.record.read_text())["rows"]
    our_curve(GraphSource.named([options.graphs.split(",")[0]], root=options.root).read(), DEFAULT, 0, 0.0)  # warms up
    for name in options.graphs.split(","):
        graph = GraphSource.named([name], root=options.root).read()
        runs: dict[str, list[Curve]] = {system: [] for system in options.systems.split(",")}
        for seed in range(options.seeds):
            for system, curves in runs.items():
                train = our_curve if system in OURS else peer_curve
                curves.append(train(graph, system, seed, options.most))
                print(name, system, seed, curves[-1][-1], file=sys.stderr, flush=True)
        rows = [row for row in rows if row["graph"] != name] + rows_of(name, runs)
        result = {"rows": rows, "ratios": ratios(rows), "machine": machine}
        if options.record:
            options.record.write_text(json.dumps(result, indent=1) + "\n")
    return result


def rows_of(graph: str, curves: dict[str, list[Curve]]) -> list[dict[str, Any]]:
    """Return one row a system: seconds in all and to its own best, accuracies, and the default's to the same."""
    rows = []
    for system, runs in curves.items():
        best = [max(run, key=lambda point: point[1]) for run in runs]  # the first of equals
        own = [reached(run, point[1]) for run, point in zip(runs, best, strict=True)]
        row = {
            "graph": graph, "system": system, "seeds": len(runs),
            "seconds": median(run[-1][0] for run in runs), "to_best": middle(own),
            "valid": fmean(point[1] for point in best), "test": fmean(final(system, run) for run in runs),
        }  # fmt: skip
        if system != DEFAULT and DEFAULT in curves:
            ours = [reached(run, point[1]) for run, point in zip(curves[DEFAULT], best, strict=True)]
            row["to_peer"] = middle(ours)
        rows.append(row)
    return rows


def middle(seconds: list[float | None]) -> float | None:
    """Return the median, of which those never reached are the largest; None where that is one of them."""
    ordered = sorted(seconds, key=lambda one: float("inf") if one is None else one)
    return ordered[len(ordered) // 2]


def reached(run: Curve, valid: float) -> float | None:
    """Return when a run first had that validation accuracy."""
    return next((seconds for seconds, accuracy, _ in run if accuracy >= valid - NEAR), None)


def final(system: str, run: Curve) -> float:
    """Return the test accuracy of what is kept: our last entry is the result, a peer's the best on validation."""
    return run[-1][2] if system in OURS else max(run, key=lambda point: point[1])[2]


def ratios(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return how much longer the default takes to a peer's best than the peer; None where it never gets there."""
    found = {}
    for row in rows:
        if row["system"] in PEERS and "to_peer" in row:
            ours, theirs = row["to_peer"], row["to_best"]
            found[f"{row['graph']}: {row['system']}"] = None if ours is None else ours / theirs
    return found


def our_curve(graph: Any, system: str, seed: int, _: float) -> Curve:
    """Train by way of the pipeline, with hops of its own; the test accuracy is known at the end alone."""
    from gamlp.runs.run import train_run
    from gamlp.runs.spec import RunSpec

    spec = RunSpec.of(graph, OURS[system], seeds=[seed])
    points: Curve = []
    start = process_time()
    with watched(points, start):
        (run,) = train_run(graph, spec, folder=None)["runs"]
    return [*points, (process_time() - start, run["valid_accuracy"], run["test_accuracy"])]


@contextmanager
def watched(points: Curve, start: float) -> Iterator[None]:
    """Note when the best validation accuracy rises, which the stages report beside their progress."""
    from gamlp.progress import report_to

    def advance(steps: float = 1, note: str = "") -> None:
        words = note.split()
        if words[:1] == ["valid"] and words[-1] == "%":
            points.append((process_time() - start, float(words[1]) / 100, 0.0))

    @contextmanager
    def reporter(description: str, total: float | None) -> Iterator[Callable[..., None]]:
        yield advance

    report_to(reporter)
    try:
        yield
    finally:
        report_to(None)


def peer_curve(graph: Any, system: str, seed: int, most: float) -> Curve:
    """Train one of PyG's; validated after every epoch, and tested, off the clock, whenever that is its best so far."""
    import torch
    from torch.nn import functional

    data, classes = as_data(graph), len(graph.classes)
    train, valid, test = (torch.from_numpy(ids) for ids in graph.split_for(seed).sets.values())
    torch.manual_seed(seed)
    start, (_, rate, decay, epochs) = process_time(), PEERS[system]
    network, inputs, batch = PEER_NETWORKS[system](data, classes)
    groups = [{"params": network.first.parameters(), "weight_decay": decay}, {"params": network.last.parameters()}]
    optimizer = torch.optim.Adam(groups, lr=rate)
    spent, points = process_time() - start, [(0.0, 0.0, 0.0)]
    while len(points) <= epochs and spent < most:
        start = process_time()
        network.train()
        for rows in batch(train):
            optimizer.zero_grad()
            functional.cross_entropy(network(*inputs(rows)), data.y[rows]).backward()
            optimizer.step()
        accuracy = correct(network, inputs, data.y, valid)
        spent += process_time() - start
        better = accuracy > max(point[1] for point in points)
        points.append((spent, accuracy, correct(network, inputs, data.y, test) if better else 0.0))
    return points[1:]


def correct(network: Any, inputs: Any, labels: Any, ids: Any) -> float:
    """Return the share of the nodes `ids` that a network has right."""
    import torch

    network.eval()
    with torch.no_grad():
        return float((network(*inputs(ids)).argmax(dim=1) == labels[ids]).float().mean())


def as_data(graph: Any) -> Any:
    """Return the graph as PyG has it; its examples normalise the features of the citation graphs alone."""
    import numpy as np
    import torch
    from torch_geometric.data import Data
    from torch_geometric.transforms import NormalizeFeatures

    matrix = graph.adjacency
    rows = np.repeat(np.arange(graph.nodes), np.diff(matrix.indptr))
    edges = torch.from_numpy(np.stack([np.asarray(matrix.indices, np.int64), rows]))
    features = torch.from_numpy(np.array(graph.features, dtype=np.float32))
    data = Data(x=features, edge_index=edges, y=torch.from_numpy(np.array(graph.labels, dtype=np.int64)))
    return NormalizeFeatures()(data) if graph.name in CITATION else data


def passing(convolution: str, system: str, *, input_dropout: float, **options: Any) -> Callable[[Any, int], Any]:
    """Return what builds two layers of message passing, with ReLU and dropout between them; one step an epoch."""

    def build(data: Any, classes: int) -> Any:
        from torch import nn
        from torch.nn import functional
        from torch_geometric import nn as layers

        layer, hidden = getattr(layers, convolution), PEERS[system][0]
        wide = data.edge_index if convolution == "GCNConv" else edges_for(data)

        class Two(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = layer(data.num_features, hidden, **options)
                self.last = layer(hidden, classes, **options)

            def forward(self, rows: Any) -> Any:
                x = functional.dropout(data.x, input_dropout, training=self.training) if input_dropout else data.x
                x = functional.relu(self.first(x, wide))
                x = functional.dropout(x, 0.5, training=self.training)
                return self.last(x, data.edge_index)[rows]

        return Two(), lambda rows: (rows,), lambda train: [train]

    return build


def edges_for(data: Any) -> Any:
    """Return the edges for a layer that sends whole rows of features: as a sparse matrix where messages are too large.

    PyG's documentation advises it there (memory-efficient aggregations); messages of Physics would be 16 GiB.
    """
    from torch_geometric.utils import to_torch_csr_tensor

    if 4 * data.num_edges * data.num_features <= LARGEST_MESSAGES:
        return data.edge_index
    return to_torch_csr_tensor(data.edge_index, size=(data.num_nodes, data.num_nodes))  # undirected: its transpose


def sign(data: Any, classes: int) -> Any:
    """Build SIGN on the hops of PyG's transform: for each a linear layer, ReLU and dropout; side by side, the last."""
    import torch
    from torch import nn
    from torch.nn import functional
    from torch_geometric.transforms import SIGN

    hops = SIGN(SIGN_HOPS)(data.clone())
    hops = [hops.x, *(hops[f"x{hop + 1}"] for hop in range(SIGN_HOPS))]
    hidden = PEERS["PyG SIGN"][0]

    class Sign(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ModuleList(nn.Linear(data.num_features, hidden) for _ in hops)
            self.last = nn.Linear(len(hops) * hidden, classes)

        def forward(self, *xs: torch.Tensor) -> torch.Tensor:
            made = [functional.relu(own(x)) for own, x in zip(self.first, xs, strict=True)]
            made = [functional.dropout(one, 0.5, training=self.training) for one in made]
            return self.last(torch.cat(made, dim=1))

    def batch(train: torch.Tensor) -> Any:
        return train[torch.randperm(len(train))].split(SIGN_BATCH)

    return Sign(), lambda rows: [hop[rows] for hop in hops], batch


PEER_NETWORKS: dict[str, Callable[[Any, int], Any]] = {
    "PyG GCN": passing("GCNConv", "PyG GCN", input_dropout=0.5, cached=True),
    "PyG GraphSAGE": passing("SAGEConv", "PyG GraphSAGE", input_dropout=0.0),
    "PyG SIGN": sign,
}

if __name__ == "__main__":
    main()
