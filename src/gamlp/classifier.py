"""A scikit-learn classifier on the pipeline: `GAMLPClassifier().fit(X, y, adjacency=A).predict(X, adjacency=A)`.

Without an adjacency it is a plain multi-layer perceptron, one row independent of the other, and every row needs a
label. With one, −1 (None or "" among words) marks the nodes whose label is not known; they are predicted, and later
stages learn from them. What was fitted with an adjacency predicts with one, be it of the same graph or of another.

y may have several columns of 0 and 1, a label each, −1 or NaN in gaps: multi-label classification as scikit-learn has
it, where `predict` returns 0 and 1, too, and `predict_proba` (N, T).

In place of X, y and adjacency a whole graph may be given, `read_graph(…)` or a `Data` or `HeteroData` of PyTorch
Geometric: it is learned from as `gamlp train` does with this seed, and predicted as it is.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import TransformerTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from gamlp.classifier_inputs import (
    as_adjacency,
    as_graph,
    as_values,
    class_values,
    discrete,
    finite,
    labels_for,
    node_count,
    seed_from,
    several_labels,
    storable,
    table_features,
    unknown,
)
from gamlp.errors import FormatError, GamlpError, InputError, LabelError, SettingsError, ShapeError
from gamlp.graph.build.assemble import as_ids
from gamlp.graph.encode import Columns, Encoded
from gamlp.graph.graph import Graph, check_trainable
from gamlp.graph.readers.table import is_stream
from gamlp.graph.splits import Split, SplitRule
from gamlp.methods import method_named
from gamlp.methods.base import labels_of, rows_of
from gamlp.model_file import load_fitted
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import load_recipe
from gamlp.storage.checksums import check_files, checksums_of
from gamlp.storage.files import Array, read_json, write_json
from gamlp.storage.sizes import parse_size
from gamlp.targets.registry import kind_of
from gamlp.train.checkpoint import load_tensors, save_tensors
from gamlp.train.prediction import Prediction
from gamlp.trust.promise import promised_sets


class GAMLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Graph Attention MLP as a scikit-learn classifier.

    Args:
        method: any method by name, as "gamlp-jk+rlu", "sgc+cs", "label-propagation" or "gcn".
        recipe: a recipe by name or path; "default" adapts itself to the graph.
        settings: any further settings by name, as {"label_hops": 5}.
        hops, hidden, dropout, epochs, learning_rate, weight_decay: what is changed most often; None = the recipe's.
        metric: what chooses the epoch, as "average_precision"; None = accuracy.
        valid_fraction: the share of labelled nodes that choose the epoch, where fit is given no `valid`; 0 = none.
        memory: bytes that propagation may use, or a size as "8GiB"; None = as many as it takes.
        engine: "local", "cuda" or "ray"; None = cuda where the device is, else local.
        cache: a folder in which the same propagation is found again.
        device: "cpu" or "cuda".
        random_state: same number, same bits.

    Attributes:
        classes_: the labels, sorted; of several labels a node, their numbers or names.
        probabilities_: (N, C), what the fitted graph's nodes are.
        attention_: (N, K+1), each hop's weight in each node.
        history_: loss and validation scores of each evaluation.
    """

    def __init__(
        self,
        method: str = "gamlp-jk",
        *,
        recipe: str = "default",
        settings: dict[str, Any] | None = None,
        hops: int | None = None,
        hidden: int | None = None,
        dropout: float | None = None,
        epochs: int | tuple[int, ...] | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        metric: str | None = None,
        valid_fraction: float = 0.1,
        memory: int | str | None = None,
        engine: str | None = None,
        cache: str | Path | None = None,
        device: str = "cpu",
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.recipe = recipe
        self.settings = settings
        self.hops = hops
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.metric = metric
        self.valid_fraction = valid_fraction
        self.memory = memory
        self.engine = engine
        self.cache = cache
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, adjacency: Any = None, valid: Any = None) -> GAMLPClassifier:
        """Learn from the labelled nodes.

        Args:
            X: features (N, F), dense, sparse or a data frame, whose columns may be numbers with gaps, categories, text,
                dates or lists; None where there are none but an adjacency; or a whole graph, which brings all else: its
                own labels, of which train and valid are read, and its split.
            y: labels (N,), numbers or words; with an adjacency −1, None or "" where unknown; or (N, T) of 0 and 1.
            adjacency: (N, N) scipy sparse, dense, or an Adjacency; or edges between rows of X, as a table with columns
                source and target (pandas, Polars, DuckDB, Arrow) or an edge_index (2, E); made symmetric.
            valid: ids or a mask of the labelled nodes that choose the epoch; they are not trained on.
        """
        graph, numbered = as_graph(X)
        if graph is not None:
            self._alone(y=y, adjacency=adjacency, valid=valid)
            return self._fit_graph(graph, numbered=numbered)
        X = self._features(X, adjacency, reset=True)
        labels = self._encode(y, len(X), graph=adjacency is not None)
        seed = seed_from(self.random_state)
        links = as_adjacency(adjacency, X)
        split = self._split(labels, valid, seed)
        encoded = None if self._encoding is None else Encoded(self._encoding)
        graph = Graph(links, X, labels, tuple(map(str, self.classes_)), split, name="fit", encoded=encoded).check()
        check_trainable(graph, split)
        self._train(graph, split, alone=adjacency is None, seed=seed)
        self._fingerprint = None if adjacency is None else graph.fingerprint
        return self

    def _fit_graph(self, graph: Graph, *, numbered: bool) -> GAMLPClassifier:
        seed = seed_from(self.random_state)
        split = graph.split_for(seed)
        self.classes_ = class_values(graph, numbered=numbered)
        self.n_features_in_ = graph.features.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if graph.feature_names is not None:
            self.feature_names_in_ = np.array(graph.feature_names, dtype=object)
        self._train(graph, split, alone=False, seed=seed)
        self._fingerprint = graph.fingerprint
        return self

    def predict_proba(self, X: Any, adjacency: Any = None, y: Any = None) -> Array:
        """Return probabilities (N, C) of the fitted graph, or of another, where `y` says which labels are known.

        Of a whole graph in place of X, too, no labels are known but those of `y`; a heterogeneous one has a row for
        each node of its target type.
        """
        check_is_fitted(self)
        return self._probabilities(self._graph(X, adjacency), y)

    def _graph(self, X: Any, adjacency: Any) -> Graph:
        """Return what is to be predicted as a graph, without labels where it is none already."""
        graph, _ = as_graph(X)
        if graph is not None:
            self._alone(adjacency=adjacency)
            return graph
        X = self._features(X, adjacency, reset=False)
        if (adjacency is None) != (self._fingerprint is None):
            raise InputError(
                f"The classifier was fitted {'without' if adjacency is not None else 'with'} an adjacency.\n"
                "Predict as it was fitted; nodes without edges have an adjacency of zeros."
            )
        return Graph(as_adjacency(adjacency, X), X, np.full(len(X), -1, np.int64), name="predict")

    def _probabilities(self, graph: Graph, y: Any) -> Array:
        if y is None and self._fingerprint is not None and graph.fingerprint == self._fingerprint:
            return np.array(self.probabilities_)
        known = self._fitted.kind.unknown(graph.nodes, len(self.classes_))
        if y is not None:
            rows = slice(None) if graph.targets is None else graph.targets
            known[rows] = self._known(y, len(known[rows]))
        return self._fitted.predict(graph, known).probabilities

    @staticmethod
    def _alone(**given: Any) -> None:
        others = [name for name, value in given.items() if value is not None]
        if others:
            raise InputError(
                f"{others[0]} was given beside a whole graph, which has its own.\n"
                "Leave it out, or give features, labels and adjacency one by one."
            )

    def decision_function(self, X: Any, adjacency: Any = None, y: Any = None) -> Array:
        """Return log-probabilities (N, C): the logits of each node less a number of its own; of two classes, (N,).

        Their softmax is `predict_proba`. Of two classes it is log p₁ − log p₀, as scikit-learn has it; of several
        labels log p − log(1 − p) of each, (N, T).
        """
        probabilities = self.predict_proba(X, adjacency, y).astype(np.float64)
        logs = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
        if self._fitted.kind.dimensions > 1:
            return np.asarray(logs - np.log(np.maximum(1 - probabilities, np.finfo(np.float32).tiny)), dtype=np.float32)
        return np.asarray(logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs, dtype=np.float32)

    @available_if(lambda self: method_named(self.method).on_hops)  # type: ignore[untyped-decorator]
    def transform(self, X: Any, adjacency: Any = None) -> Array:
        """Return an embedding of each node, (N, hidden): what the last layer reads; no label is in it."""
        check_is_fitted(self)
        return self._fitted.embed(self._graph(X, adjacency))[1]

    @available_if(lambda self: method_named(self.method).on_hops)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, adjacency: Any = None, valid: Any = None) -> Array:
        """Learn, then return an embedding of each node."""
        return np.asarray(self.fit(X, y, adjacency, valid).transform(X, adjacency))

    def predict(self, X: Any, adjacency: Any = None, y: Any = None) -> Array:
        """Return the most likely label of each node, or several labels as 0 and 1, (N, T)."""
        probabilities = self.predict_proba(X, adjacency, y)
        predicted = self._fitted.kind.predicted(probabilities)
        return predicted.astype(np.int64) if predicted.ndim > 1 else np.asarray(self.classes_[predicted])

    def predict_set(self, X: Any, adjacency: Any = None, y: Any = None, *, coverage: float = 0.9) -> Array:
        """Return which classes contain the truth with that probability, (N, C) bool in the order of `classes_`.

        `gamlp.trust.conformal` has why, and where the promise does not hold; a warning says so where it can be seen.
        """
        check_is_fitted(self)
        graph = self._graph(X, adjacency)
        own = y is None and self._fingerprint is not None and graph.fingerprint == self._fingerprint
        said = Prediction(rows_of(graph), self._probabilities(graph, y))
        promise = promised_sets(self._fitted, said, graph, coverage, own=own)
        for sentence in promise.warnings:
            warnings.warn(sentence, stacklevel=2)
        return promise.sets

    def score(self, X: Any, y: Any = None, adjacency: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on the nodes whose label is known; of a whole graph without `y`, on its test nodes.

        Of several labels a node, as scikit-learn has it, the share of nodes whose labels are all right, of those all of
        whose labels are known.
        """
        from sklearn.metrics import accuracy_score

        graph, _ = as_graph(X)
        predicted = self.predict(X, adjacency)
        if predicted.ndim > 1:
            return self._subset_accuracy(graph, y, predicted, sample_weight)
        y = self._test_labels(graph) if graph is not None and y is None else labels_for(y, len(predicted))
        known = np.ones(len(predicted), bool) if adjacency is None and graph is None else ~unknown(y)
        if not known.any():
            raise LabelError("None of the labels is known.\nGive at least one node's label to score against.")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(discrete(y[known]), predicted[known], sample_weight=weight))

    def save(self, folder: str | Path) -> None:
        """Write the fitted classifier into a folder, as safetensors and JSON."""
        import torch

        check_is_fitted(self)
        folder = Path(folder)
        self._fitted.save(folder)
        tensors = {"probabilities": torch.from_numpy(self.probabilities_)}
        if self.attention_ is not None:
            tensors["attention"] = torch.from_numpy(self.attention_)
        save_tensors(folder / "fitted.safetensors", tensors, {"fingerprint": self._fingerprint})
        facts = {
            "parameters": {name: storable(value) for name, value in self.get_params().items()},
            "classes": self.classes_.tolist(),
            "kind": self.classes_.dtype.str,
            "features": self.n_features_in_,
            "names": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "history": self.history_,
            "iterations": self.n_iter_,
            "n_parameters": self.n_parameters_,
            "files": checksums_of(folder / name for name in ("model.json", "fitted.safetensors")),
        }
        write_json(folder / "classifier.json", facts)

    @classmethod
    def load(cls, folder: str | Path) -> GAMLPClassifier:
        """Read back what `save` wrote."""
        folder = Path(folder)
        facts = read_json(folder / "classifier.json")
        if isinstance(facts, dict) and isinstance(facts.get("files"), dict):
            check_files(folder, facts["files"])
        tensors, more = load_tensors(folder / "fitted.safetensors")
        try:
            loaded = cls(**facts["parameters"])
            loaded.epochs = tuple(loaded.epochs) if isinstance(loaded.epochs, list) else loaded.epochs
            loaded.classes_ = np.array(facts["classes"], dtype=np.dtype(facts["kind"]))
            loaded.n_features_in_ = facts["features"]
            if facts["names"] is not None:
                loaded.feature_names_in_ = np.array(facts["names"], dtype=object)
            loaded.history_, loaded.n_iter_ = facts["history"], facts["iterations"]
            loaded.probabilities_ = tensors["probabilities"].numpy()
            loaded.attention_ = tensors["attention"].numpy() if "attention" in tensors else None
            loaded._fingerprint = more["fingerprint"]
            loaded._fitted = load_fitted(folder, engine=loaded._engine(), device=loaded.device)
            loaded.settings_ = loaded._fitted.pipeline.settings
            loaded.n_parameters_ = facts.get("n_parameters", loaded._fitted.learned.parameters)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, GamlpError):
                raise
            raise FormatError(
                f"{folder} does not hold a classifier ({error}).\nName a folder that save made."
            ) from error
        return loaded

    def _engine(self) -> Engine:
        memory = parse_size(self.memory) if isinstance(self.memory, str) else self.memory
        usual = "cuda" if self.device != "cpu" and memory is None else "local"
        cache = None if self.cache is None else Path(self.cache)
        return EngineChoice(name=self.engine or usual, memory=memory, cache=cache).open(device=self.device)

    def _train(self, graph: Graph, split: Split, *, alone: bool, seed: int) -> None:
        method = method_named(self.method)
        names = ("hops", "hidden", "dropout", "epochs", "learning_rate", "weight_decay", "metric")
        chosen = {name: value for name in names if (value := getattr(self, name)) is not None} | (self.settings or {})
        if alone:  # the parameters are those of a method with edges: what the one without them fixes is left out
            method = method.without_edges()
            chosen = {name: value for name, value in chosen.items() if name not in method.fixed}
        settings = load_recipe(self.recipe).resolve(method, chosen, Outline.of(graph, split))
        idle = () if alone else method.idle_among(chosen, graph, settings)
        labels = graph.labels[split.train]
        for sentence in filter(None, (*idle, kind_of(labels).doubt(labels, graph.classes, settings))):
            warnings.warn(sentence, stacklevel=3)
        pipeline = Pipeline(method, settings, engine=self._engine(), device=self.device)
        self._fitted = fitted = pipeline.fit(graph, split, seed)
        assert fitted.prediction is not None
        self.settings_ = settings
        self.probabilities_, self.attention_ = fitted.prediction.probabilities, fitted.prediction.weights
        self.history_ = fitted.facts["history"]
        self.n_iter_ = sum(int(stage["epochs"]) for stage in fitted.facts["stages"]) or max(1, len(self.history_))
        self.n_parameters_ = fitted.facts["parameters"]

    def _features(self, X: Any, adjacency: Any, *, reset: bool) -> Array:
        learned = None if reset else self._fitted.encoding
        if reset:
            self._encoding: dict[str, Columns] | None = None
        if adjacency is not None and (X is None or getattr(X, "shape", (0, 1))[1:] == (0,)):
            if reset:
                self.n_features_in_ = 0
            return np.empty((node_count(adjacency), 0), np.float32)
        X, how = as_values(X), {"accept_sparse": "csr", "dtype": np.float32, "ensure_all_finite": False}
        table = is_stream(X) and (reset or learned is not None)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is refused below
                X = validate_data(self, X, reset=reset, **({"skip_check_array": True} if table else how))
        except GamlpError:
            raise
        except ValueError as error:  # scikit-learn's own words, in our tree of errors
            raise InputError(str(error)) from error
        if table:
            columns, features = table_features(X, learned)
            self._encoding = {"": columns} if reset else None
            return features
        return finite(np.asarray(X.toarray() if hasattr(X, "toarray") else X))

    def _subset_accuracy(self, graph: Graph | None, y: Any, predicted: Array, sample_weight: Any) -> float:
        labels = None if y is None else several_labels(y, *predicted.shape)
        if labels is None and graph is not None:
            test = graph.split_for(seed_from(self.random_state)).test
            labels = labels_of(self._fitted.class_numbers(graph), test)
            labels = labels if graph.targets is None else labels[graph.targets]
        if labels is None or not (labels >= 0).all(axis=1).any():
            raise LabelError("Of no node all labels are known.\nGive at least one row of 0 and 1 to score against.")
        known = (labels >= 0).all(axis=1)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average((labels[known] == predicted[known]).all(axis=1), weights=weight))

    def _encode(self, y: Any, nodes: int, *, graph: bool) -> Array:
        """Number the labels by classes_; −1 = unknown."""
        several = None if y is None else several_labels(y, nodes)
        if several is not None:
            self.classes_ = np.arange(several.shape[1])
            return several
        y = labels_for(y, nodes)
        missing = unknown(y) if graph else np.zeros(nodes, bool)
        self.classes_, numbers = np.unique(discrete(y[~missing]), return_inverse=True)
        if len(self.classes_) < 2:
            found = f"'{self.classes_[0]}'" if len(self.classes_) else "unknown"
            raise LabelError(
                f"All labels are {found}: {len(self.classes_)} class.\nAt least two classes are needed to learn from."
            )
        labels = np.full(nodes, -1, dtype=np.int64)
        labels[~missing] = numbers
        return labels

    def _known(self, y: Any, nodes: int) -> Array:
        """Number labels by the classes of training; unknown ones and other classes −1."""
        if self._fitted.kind.dimensions > 1:
            several = several_labels(y, nodes, len(self.classes_))
            if several is None:
                raise ShapeError(f"y has the shape {np.shape(y)}.\nGive a row of {len(self.classes_)} labels per node.")
            return several
        y = labels_for(y, nodes)
        number = {value: at for at, value in enumerate(self.classes_.tolist())}
        known = np.array([number.get(value, -1) for value in y.tolist()], dtype=np.int64)
        return np.where(unknown(y), -1, known)

    def _test_labels(self, graph: Graph) -> Array:
        """Return the labels of a graph's test nodes, None elsewhere; one for each row of a prediction."""
        test = graph.split_for(seed_from(self.random_state)).test
        names = np.full(graph.nodes, None, dtype=object)
        known = labels_of(self._fitted.class_numbers(graph), test)
        names[known >= 0] = self.classes_[known[known >= 0]]
        return names if graph.targets is None else names[graph.targets]

    def _split(self, labels: Array, valid: Any, seed: int) -> Split:
        groups = kind_of(labels).strata(labels)
        known, rest = np.flatnonzero(groups >= 0), np.flatnonzero(groups < 0)
        if valid is not None:
            ids = as_ids(valid, "valid", len(labels))
            return Split(np.setdiff1d(known, ids), ids, np.setdiff1d(rest, ids))
        if not 0 <= self.valid_fraction < 1:
            raise SettingsError(f"valid_fraction is {self.valid_fraction}.\nExpected 0 or more, and less than 1.")
        if np.bincount(groups[known]).min() * self.valid_fraction < 1:  # too few to spare any
            return Split(known, np.zeros(0, np.int64), rest)
        drawn = SplitRule(1 - self.valid_fraction, self.valid_fraction).draw(labels, seed)
        return Split(np.setdiff1d(known, drawn.valid), drawn.valid, rest)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = method_named(self.method).several_labels
        tags.transformer_tags = TransformerTags(preserves_dtype=[]) if hasattr(self, "transform") else None
        return tags
