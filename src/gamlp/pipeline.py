"""The road, whole: from a graph to predictions. Whatever predicts goes through here.

    Pipeline(method, settings, engine=…).fit(graph, split, seed)  →  Fitted
    Fitted.predict(graph)                                         →  Prediction

    fit       hide all labels but those of train and valid → fill, scale and propagate (`HopSource`) → the method
              learns, stage by stage → correct and smooth, chosen on validation
    predict   columns by name → the same steps with what was measured and learned

The command line, `GAMLPClassifier`, compare, tune, predict and the figures that train small models call this and
nothing else; so `+rlu`, `+sle`, `+scr` and `+cs` mean the same everywhere, for new graphs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph, check_trainable, check_width
from gamlp.graph.splits import Split
from gamlp.labels.choose import choose_correct_and_smooth
from gamlp.labels.correction import CorrectAndSmooth, correct_and_smooth
from gamlp.methods.base import Context, FittedMethod, Method, labels_of, rows_of
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.local import LocalEngine
from gamlp.storage.files import Array
from gamlp.train.hop_source import HopSource, check_device, relation_subsets, reliable_candidates, wanted_rows
from gamlp.train.prediction import Prediction


class Pipeline:
    """A method with its settings, on an engine and a device.

    `hop_source` may be another pipeline's: seeds and methods that propagate alike then share their hops.
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
    ) -> None:
        check_device(device)
        self.method, self.settings, self.device = method, settings, device
        self.hop_source = hop_source or HopSource(engine or LocalEngine(), work=work)

    def fit(self, graph: Graph, split: Split, seed: int, *, folder: Path | None = None) -> Fitted:
        """Learn from the labels of split.train, choose on those of split.valid; no other label is read.

        A `folder` keeps what is finished of an interrupted fit.
        """
        self.method.check(graph, self.settings)
        hidden = hide_labels(graph, split)
        check_trainable(hidden, split)
        context = Context(self.hop_source, len(graph.classes), seed, self.device, folder)
        with self.hop_source.engine.session():
            learned = self.method.fit(hidden, split, self.settings, context)
            prediction, smoothing = learned.prediction, None
            assert prediction is not None
            if self.settings.correct_and_smooth:
                said = (self.hop_source.engine, prediction.probabilities, graph.adjacency, split)
                labels = (hidden.labels[split.train], hidden.labels[split.valid])
                smoothing, better = choose_correct_and_smooth(*said, *labels)
                prediction = replace(prediction, probabilities=better)
        columns = (graph.feature_names, graph.features.shape[1])
        embedded = graph.fingerprint if embeds(graph, self.settings) else ""
        return Fitted(self, learned, smoothing, graph.classes, *columns, embedded, prediction)

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
    embedded: str = ""  # the fingerprint of the graph whose nodes have embeddings, where these are input
    prediction: Prediction | None = None  # of the graph it was fitted on; None where it was loaded

    def predict(self, graph: Graph, known: Array | None = None, *, split: Split | None = None) -> Prediction:
        """Return what it says of any graph; its features are matched by name where they have names.

        `known` (N,) are class numbers, −1 = unknown; without, the labels of the graph are known. With a `split`, only
        those of split.train are, as in training: the graph of training then comes out as it did.
        """
        graph, settings, engine = self.fit_columns(graph), self.pipeline.settings, self.pipeline.hop_source.engine
        known = self.class_numbers(graph) if known is None else known
        rows = candidates = None
        if split is not None:
            known = labels_of(known, split.train)
        if split is not None and self.pipeline.method.on_hops:
            rows = wanted_rows(graph, split, settings)
            candidates = reliable_candidates(split, rows_of(graph, rows), settings)
        with engine.session():
            said = self.learned.predict(graph, known, candidates=candidates, rows=rows)
            if self.smoothing is None:
                return said
            seen = np.flatnonzero(known >= 0)
            labels = (seen, known[seen])
            better = correct_and_smooth(engine, said.probabilities, graph.adjacency, *labels, settings=self.smoothing)
            return replace(said, probabilities=better, logits=None)

    def embed(self, graph: Graph, *, split: Split | None = None) -> tuple[Array, Array]:
        """Return the rows that `predict` speaks of, and an embedding of each node, (R, width); no label is in it."""
        graph, settings = self.fit_columns(graph), self.pipeline.settings
        on_hops = split is not None and self.pipeline.method.on_hops
        rows = wanted_rows(graph, split, settings) if on_hops and split is not None else None
        with self.pipeline.hop_source.engine.session():
            return self.learned.embed(graph, rows=rows)

    def fit_columns(self, graph: Graph) -> Graph:
        """Return the graph with the columns of training, in their order; one that cannot be predicted is refused."""
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
        """Return the labels of a graph by the classes of training; −1 for other classes (N,)."""
        number = {name: index for index, name in enumerate(self.classes)}
        translation = np.array([number.get(name, -1) for name in graph.classes] + [-1], dtype=np.int64)
        return np.asarray(translation[graph.labels])

    def save(self, folder: Path) -> None:
        """Write model.safetensors and model.json, which `gamlp.model_file.load_fitted` reads."""
        from gamlp.model_file import save_fitted

        save_fitted(self, folder)

    @property
    def facts(self) -> Mapping[str, Any]:
        """How the fit went: parameters, history of evaluations, stages, shares of relations."""
        return {name: getattr(self.learned, name) for name in ("parameters", "history", "stages", "relations")}


def embeds(graph: Graph, settings: Any) -> bool:
    """Say whether types that came without features get embeddings."""
    return getattr(settings, "featureless", "") == "embeddings" and not all(kind.described for kind in graph.types)


def hide_labels(graph: Graph, split: Split) -> Graph:
    """Return the graph with the labels of train and valid only: no other label reaches training."""
    return graph.with_labels(labels_of(graph.labels, np.concatenate([split.train, split.valid])))
