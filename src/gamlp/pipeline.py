"""The road, whole: from a graph to predictions. Whatever predicts goes through here.

    Pipeline(method, settings, engine=…).fit(graph, split, seed)  →  Fitted
    Fitted.predict(graph)                                         →  Prediction

    fit       hide all labels but those of train and valid → fill, scale and propagate (`HopSource`) → the method
              learns, stage by stage → correct and smooth, chosen on validation → a temperature, and what sets with
              a promise need (`trust`)
    predict   columns by name → the same steps with what was measured and learned

The command line, `GAMLPClassifier`, compare, tune, predict and the figures that train small models call this and
nothing else; so `+rlu`, `+sle`, `+scr` and `+cs` mean the same everywhere, for new graphs too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.errors import LabelError, SettingsError
from gamlp.graph.encode import Columns, Encoded
from gamlp.graph.graph import Graph, check_trainable, check_width
from gamlp.graph.splits import Split
from gamlp.labels.choose import choose_correct_and_smooth
from gamlp.labels.correction import CorrectAndSmooth, correct_and_smooth
from gamlp.methods.base import Context, FittedMethod, Method, labels_of, rows_of
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.local import LocalEngine
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.objective import Objective
from gamlp.targets.registry import kind_of
from gamlp.train.hop_source import HopSource, check_device, relation_subsets, reliable_candidates, wanted_rows
from gamlp.train.prediction import Prediction
from gamlp.trust.conformal import set_aside
from gamlp.trust.likeness import Likeness
from gamlp.trust.trust import Trust, fit_trust, needed_trust

if TYPE_CHECKING:
    from gamlp.graph.build.new_nodes import NewNodes
    from gamlp.train.living import Living


class Pipeline:
    """A method with its settings, on an engine and a device.

    `hop_source` may be another pipeline's: seeds and methods that propagate alike then share their hops. `start` gives
    for a seed what its fit begins with: weights and scaling of another run.
    """

    def __init__(
        self,
        method: Method,
        settings: Any,
        *,
        engine: Engine | None = None,
        device: str = "cpu",
        work: Path | None = None,
        hop_source: HopSource | None = None,
        start: Callable[[int], Fitted] | None = None,
    ) -> None:
        check_device(device)
        self.start = start
        self.method, self.settings, self.device = method, settings, device
        self.hop_source = hop_source or HopSource(engine or LocalEngine(), work=work)

    def fit(self, graph: Graph, split: Split, seed: int, *, folder: Path | None = None) -> Fitted:
        """Learn from the labels of split.train, choose on those of split.valid; no other label is read.

        A `folder` keeps what is finished of an interrupted fit.
        """
        self.method.check(graph, self.settings)
        check_trainable(hide_labels(graph, split), split)
        split, apart = without_calibration_nodes(split, self.settings, seed)
        hidden, engine = hide_labels(graph, split), self.hop_source.engine
        labels = (hidden.labels[split.train], hidden.labels[split.valid])
        objective = Objective.of(kind_of(graph.labels), self.settings, *labels, classes=len(graph.classes))
        begun = None if self.start is None else self.start(seed).learned
        context = Context(self.hop_source, len(graph.classes), seed, self.device, folder, objective, begun)
        with engine.session():
            learned = self.method.fit(hidden, split, self.settings, context)
            said, smoothing = learned.prediction, None
            assert said is not None
            if self.settings.correct_and_smooth:
                smoothing, better = choose_correct_and_smooth(
                    engine, said.probabilities, graph.adjacency, split, *labels, objective=objective
                )
                said = replace(said, probabilities=better)
            trust = fit_trust(said, graph, split, engine, apart=apart, seed=seed)
        columns = (graph.feature_names, graph.features.shape[1])
        embedded = graph.fingerprint if embeds(graph, self.settings) else ""
        calibrated = said if trust is None else trust.calibrated(said)
        own = (graph.classes, *columns, objective, embedded)
        encoding = None if graph.encoded is None else graph.encoded.columns
        return Fitted(self, learned, smoothing, *own, trust, calibrated, said.probabilities, encoding)

    def hops(self, graph: Graph, split: Split, *, rows: Array | None = None) -> Any:
        """Return the hops that `fit` would read, of `rows` or of those that the settings ask for."""
        source, settings = self.hop_source, self.settings
        wanted = wanted_rows(graph, split, settings) if rows is None else rows
        subsets = relation_subsets(graph, settings)
        return source.hops(graph, settings, wanted, scaling=source.scaling(graph, settings), subsets=subsets)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A pipeline that has learned: what it says of its own graph, and of any other."""

    pipeline: Pipeline
    learned: FittedMethod
    smoothing: CorrectAndSmooth | None  # how probabilities are corrected and smoothed; None = not
    classes: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    features: int
    objective: Objective = field(default_factory=Objective)
    embedded: str = ""  # the fingerprint of the graph whose nodes have embeddings, where these are input
    trust: Trust | None = None  # temperature, and what sets are promised by; None without validation nodes
    prediction: Prediction | None = None  # of the graph it was fitted on; None where it was loaded
    uncalibrated: Array | None = None  # the probabilities of that before the temperature
    encoding: Mapping[str, Columns] | None = None  # how columns of tables became features; None of a matrix

    def predict(self, graph: Graph, known: Array | None = None, *, split: Split | None = None) -> Prediction:
        """Return what it says of any graph; its features are matched by name where they have names.

        `known` (N,), or (N, T), are labels, −1 = unknown; without, the labels of the graph are known. With a `split`,
        only those of split.train are, as in training: the graph of training then comes out as it did.
        """
        graph, engine = self.fit_columns(graph), self.pipeline.hop_source.engine
        known, asked = self.asked(graph, known, split)
        with engine.session():
            return self.finished(graph, known, self.learned.predict(graph, known, **asked))

    def predict_parts(
        self,
        graph: Graph,
        known: Array | None = None,
        *,
        split: Split | None = None,
        rows: Array | None = None,
        embeddings: bool = False,
    ) -> Iterator[Prediction]:
        """Yield the same part by part, rows ascending: all at once unless a memory limit forbids it.

        `rows` may be any nodes of the graph, those without a label among them; by default those of `predict`.
        """
        graph, engine = self.fit_columns(graph), self.pipeline.hop_source.engine
        known, asked = self.asked(graph, known, split)
        if rows is not None:
            self.check_rows(rows, graph)
            asked["rows"] = rows
        parts = (
            self.learned.predict_parts if self.smoothing is None else partial(FittedMethod.predict_parts, self.learned)
        )
        with engine.session():  # smoothing needs all nodes at once: the plain way gives them
            for said in parts(graph, known, **asked, embeddings=embeddings):
                yield self.finished(graph, known, said)

    def asked(self, graph: Graph, known: Array | None, split: Split | None) -> tuple[Array, dict[str, Array | None]]:
        """Return the labels that are known, and of which rows, and candidates, a prediction speaks."""
        known, settings = self.class_numbers(graph) if known is None else known, self.pipeline.settings
        if split is None:
            return known, {"rows": None, "candidates": None}
        known = labels_of(known, split.train)
        if not self.pipeline.method.on_hops:
            return known, {"rows": None, "candidates": None}
        rows = wanted_rows(graph, split, settings)
        return known, {"rows": rows, "candidates": reliable_candidates(split, rows_of(graph, rows), settings)}

    def check_rows(self, rows: Array, graph: Graph) -> None:
        """Refuse to predict some rows where all are needed at once."""
        if len(rows) < len(rows_of(graph)) and (self.smoothing is not None or not self.pipeline.method.some_rows):
            raise SettingsError(
                f"{self.pipeline.method.name} predicts all nodes at once.\nLeave the rows out, and take what you need."
            )

    def finished(self, graph: Graph, known: Array, said: Prediction) -> Prediction:
        """Return a prediction corrected and smoothed, where that was learned, and calibrated."""
        if self.smoothing is not None:
            seen, engine = np.flatnonzero(self.kind.known(known)), self.pipeline.hop_source.engine
            before, labels = (said.probabilities, graph.adjacency), (seen, known[seen])
            better = correct_and_smooth(engine, *before, *labels, settings=self.smoothing)
            said = replace(said, probabilities=better, logits=None)
        return said if self.trust is None else self.trust.calibrated(said)

    def sets(self, said: Prediction, graph: Graph, coverage: float, *, like: Likeness | None = None) -> Array:
        """Return for each row of a prediction of `predict` the classes that contain the truth with that probability.

        (R, C) bool; where the promise holds, and where it does not, stands in `trust.conformal`. `trust.promise` says
        whom the nodes are `like`, where they are unlike those of validation.
        """
        engine, trust = self.pipeline.hop_source.engine, needed_trust(self.trust)
        with engine.session():
            return trust.sets(said, graph, engine, coverage, like=like)

    def living(self, graph: Graph, known: Array | None = None, *, split: Split | None = None) -> Living:
        """Keep what is needed of a graph to predict nodes that it does not have yet; arguments as of `predict`.

            living.predict(NewNodes(nodes, source, target))      of the new nodes alone, by the rows of their hops

        The states lie in the cache of the engine, or in memory. Their columns are matched by `new_columns`.
        """
        if self.smoothing not in (None, CorrectAndSmooth(None, None)):  # or chose to leave predictions as they are
            raise SettingsError(
                f"{self.pipeline.method.name} corrects and smooths over the whole graph: new nodes are not predicted "
                "alone.\nPredict them with all others: gamlp predict --new … --exact."
            )
        graph = self.fit_columns(graph)
        known, asked = self.asked(graph, known, split)
        with self.pipeline.hop_source.engine.session():
            return replace(self.learned.living(graph, known, **asked), trust=self.trust)

    def predict_exactly(self, graph: Graph, new: NewNodes, *, split: Split) -> Prediction:
        """Return what it says of new nodes in the graph that has them: all nodes feel them, whatever the method.

        A method on hops computes again what the new nodes reach, where the engine has a cache with the states of the
        graph (`living`); others read the whole graph.
        """
        from gamlp.graph.build.changes import Changes, apply_changes
        from gamlp.propagate.stationary import is_symmetric

        graph, count = self.fit_columns(graph), new.nodes.nodes
        directed = not is_symmetric(graph.adjacency)
        joined, moved = apply_changes(graph, Changes.of_new(new.check(graph)), directed=directed)
        ids = graph.nodes + np.arange(count)
        with self.pipeline.hop_source.engine.session():
            self.learned.carry(graph, joined, moved, directed=directed)
        test = np.concatenate([split.test, ids])
        said = self.predict(joined, split=Split(split.train, split.valid, test))
        rows = np.searchsorted(said.rows, ids)
        weights, logits = (None if part is None else part[rows] for part in (said.weights, said.logits))
        return Prediction(ids, said.probabilities[rows], weights, logits)

    def embed(self, graph: Graph, *, split: Split | None = None) -> tuple[Array, Array]:
        """Return the rows that `predict` speaks of, and an embedding of each node, (R, width); no label is in it."""
        graph = self.fit_columns(graph)
        rows = self.asked(graph, graph.labels, split)[1]["rows"]
        with self.pipeline.hop_source.engine.session():
            return self.learned.embed(graph, rows=rows)

    def fit_columns(self, graph: Graph) -> Graph:
        """Return the graph with the columns of training, in their order; one that cannot be predicted is refused."""
        if self.encoding is not None and graph.encoded is not None:
            graph = encoded_by(graph, graph.encoded, self.encoding)
        if self.feature_names is not None and graph.feature_names is not None:
            graph = graph.with_columns(self.feature_names)
        check_width(graph, self.features)
        if self.embedded and embeds(graph, self.pipeline.settings) and graph.fingerprint != self.embedded:
            raise SettingsError(
                "The model reads embeddings, which are trained for one graph and mean nothing in another.\n"
                "Train with featureless=neighbours or zeros to predict for other graphs."
            )
        return graph

    def class_numbers(self, graph: Graph) -> Array:
        """Return the labels of a graph by the classes of training, unknown for other classes; (N,) or (N, T)."""
        if graph.labels.ndim != self.kind.dimensions:
            if kind_of(graph.labels).known(graph.labels).any():
                raise LabelError(
                    f"The labels have the shape {graph.labels.shape}, the model was trained with "
                    f"{'several labels' if self.kind.dimensions > 1 else 'one class'} a node.\n"
                    "Give labels of the same kind, or none."
                )
            return self.kind.unknown(graph.nodes, len(self.classes))
        number = {name: index for index, name in enumerate(self.classes)}
        places = np.array([number.get(name, -1) for name in graph.classes], dtype=np.int64)
        return self.kind.translated(graph.labels, places, len(self.classes))

    @property
    def kind(self) -> TargetKind:
        """The kind of target that was learned."""
        return self.objective.kind

    def save(self, folder: Path) -> None:
        """Write model.safetensors and model.json, which `gamlp.model_file.load_fitted` reads."""
        from gamlp.model_file import save_fitted

        save_fitted(self, folder)

    @property
    def facts(self) -> Mapping[str, Any]:
        """How the fit went: parameters, history of evaluations, stages, shares of relations, what was tried."""
        return {name: getattr(self.learned, name) for name in ("parameters", "history", "stages", "relations", "tried")}


def encoded_by(graph: Graph, own: Encoded, encoding: Mapping[str, Columns]) -> Graph:
    """Return the graph with features that the columns of training make of its tables."""
    if own.same(encoding):
        return graph
    if own.again is not None:
        features, names = own.again(encoding)
        return replace(graph, features=features, feature_names=names, encoded=replace(own, columns=encoding))
    if own.plain and all(columns.plain for columns in encoding.values()):
        return graph  # numbers as they came: the names tell which they are
    raise SettingsError(
        f"The columns of '{graph.name}' became features by themselves, not as in training, and its tables are not "
        "here.\nPredict for the tables that it was imported from."
    )


def embeds(graph: Graph, settings: Any) -> bool:
    """Say whether types that came without features get embeddings."""
    return getattr(settings, "featureless", "") == "embeddings" and not all(kind.described for kind in graph.types)


def without_calibration_nodes(split: Split, settings: Any, seed: int) -> tuple[Split, Array]:
    """Return the split in which `calibration_share` of the validation nodes are test nodes like others, and these."""
    choosing, apart = set_aside(split.valid, getattr(settings, "calibration_share", 0.0), seed)
    return Split(split.train, choosing, np.sort(np.concatenate([split.test, apart]))), apart


def hide_labels(graph: Graph, split: Split) -> Graph:
    """Return the graph with the labels of train and valid only: no other label reaches training."""
    return graph.with_labels(labels_of(graph.labels, np.concatenate([split.train, split.valid])))
