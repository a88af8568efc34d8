"""Which number of hops suits which node: the paper's figure 1, left.

For each l = 0 … K, `runs` linear classifiers are trained on hop l alone (SGC with l hops), and for 20 sampled test
nodes the share of runs that predict them right is shown. The paper trains 50 runs. A linear classifier trained to the
end depends little on where it starts, so a run here has its own start and its own bootstrap sample of the training
nodes: the share then says how sure the class of a node is from hop l, whoever happened to be labelled.

All runs of one l train together, as one linear map into runs × C columns:

    L = Σ_runs Σ_t n_rt · cross-entropy(x_t W_r + b_r, y_t) / Σ_t n_rt,    n_r ~ Multinomial(T, 1/T)

Adam is elementwise, so no run sees another. Cost: O(T · F · runs · C) a step, with T ≤ 2,000 training nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gamlp.errors import SettingsError, SplitError
from gamlp.explain.figures.cells import Cells, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.progress import progress
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.settings import Settings
from gamlp.storage.files import Array

TRAIN_AT_MOST = 2_000
STEPS, LEARNING_RATE, WEIGHT_DECAY = 100, 0.2, 5e-6


@dataclass(frozen=True, eq=False)
class Suitability:
    """The share of runs that are right."""

    nodes: Array  # (S,) the sampled test nodes
    names: tuple[str, ...]  # their ids
    shares: Array  # (K+1, S)
    runs: int


def charts(found: Suitability) -> list[Chart]:
    """Draw the share of runs that are right, in per cent, hops × nodes."""
    hops = [f"hop {hop}" for hop in range(len(found.shares))]
    texts = [[f"{100 * share:.0f}" for share in shares] for shares in found.shares[::-1]]
    cells = Cells(hops[::-1], [0] * len(hops), found.names, texts, found.shares[::-1])
    rows = [
        (name, int(node), *(f"{share:.4f}" for share in shares))
        for name, node, shares in zip(found.names, found.nodes, found.shares.T, strict=True)
    ]
    title = f"How many hops suit a node: % of {found.runs} SGC runs that are right"
    return [heat_chart("hop-suitability", title, cells, xlabel="test node", header=("id", "node", *hops), rows=rows)]


def hop_suitability(run: FinishedRun, *, sample: int = 20, runs: int = 50, seed: int = 0) -> Suitability:
    """Train the classifiers on the hops that a run used, for test nodes drawn by `seed`."""
    if run.kind.dimensions > 1:
        raise SettingsError(
            f"{run.graph.name} has several labels a node, and the figure asks whether one class is right.\n"
            "Leave out --hop-figure."
        )
    graph, random = run.graph, np.random.default_rng([seed, 0x50F7])
    test = run.split.test[graph.labels[run.split.test] >= 0]
    if not len(test):
        raise SplitError("No test node has a label.\nThe figure needs test nodes whose class is known.")
    nodes = np.sort(random.choice(test, min(sample, len(test)), replace=False))
    train = run.split.train
    if len(train) > TRAIN_AT_MOST:
        train = np.sort(random.choice(train, TRAIN_AT_MOST, replace=False))
    rows = np.sort(np.concatenate([train, nodes]))
    values = hops_of(run, rows)
    at_train, at_nodes = np.searchsorted(rows, train), np.searchsorted(rows, nodes)
    shares = []
    with progress("hops", total=values.shape[1]) as advance:
        for hop in range(values.shape[1]):
            x, asked = values[at_train, hop], values[at_nodes, hop]
            predicted = train_linear(x, graph.labels[train], asked, classes=len(run.classes), runs=runs, seed=seed)
            shares.append((predicted == graph.labels[nodes]).mean(axis=0))
            advance()
    return Suitability(nodes, tuple(run.name_of(int(node)) for node in nodes), np.array(shares), runs)


def hops_of(run: FinishedRun, rows: Array) -> Array:
    """Return the hops that SGC would read with the run's settings, those of all relations merged; (R, K+1, F) float32.

    Of a run that has no hops (gcn, mlp, label-propagation) the default settings are taken.
    """
    method = method_named(run.record["method"])
    usual = Settings()
    settings = method.settings_from(run.record["settings"]) if method.on_hops else usual
    changed = {"combiner": "last", "relations": "merged", "hops": getattr(settings, "hops", 0) or usual.hops}
    engine = EngineChoice(memory=run.record.get("engine", {}).get("memory")).open()
    pipeline = Pipeline(method_named("sgc"), settings.model_copy(update=changed), engine=engine, work=run.folder)
    return np.asarray(pipeline.hops(run.graph, run.split, rows=rows).values, dtype=np.float32)


def train_linear(x: Array, labels: Array, asked: Array, *, classes: int, runs: int, seed: int) -> Array:
    """Train `runs` classifiers and return what each says of `asked`.  x (T, F), asked (S, F) → (runs, S)."""
    scale = 1 / max(float(np.sqrt((x**2).sum(axis=1)).mean()), 1e-12)  # rows of length 1 on average, as SGC has them
    features, targets = torch.from_numpy(x * scale), torch.from_numpy(labels).repeat_interleave(runs)
    start, counts = draws(len(x), x.shape[1], classes, runs=runs, seed=seed)
    weight, bias = start.requires_grad_(), torch.zeros(runs * classes, requires_grad=True)
    adam = torch.optim.Adam([weight, bias], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(STEPS):
        logits = (features @ weight + bias).view(len(x) * runs, classes)
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        adam.zero_grad()
        (losses.view(len(x), runs) * counts).sum().div(len(x)).backward()  # type: ignore[no-untyped-call]
        adam.step()
    with torch.no_grad():
        logits = (torch.from_numpy(asked * scale) @ weight + bias).view(len(asked), runs, classes)
    return np.asarray(logits.argmax(dim=2).T.numpy())


def draws(train: int, features: int, classes: int, *, runs: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each run's start (F, runs·C) and how often it takes each training node (T, runs)."""
    starts, counts = [], []
    for number in range(runs):
        random = np.random.default_rng([seed, number, 0x5C])
        starts.append(random.uniform(-1, 1, (features, classes)) / np.sqrt(features))
        counts.append(np.bincount(random.integers(0, train, train), minlength=train))
    start, times = np.concatenate(starts, axis=1, dtype=np.float32), np.stack(counts, axis=1).astype(np.float32)
    return torch.from_numpy(start), torch.from_numpy(times)
