"""Gradient boosting on hop rows: scikit-learn's histogram booster learns the trees, which are kept as plain tensors.

    F_0 = log shares of the classes,   F_m = F_{m−1} + η · trees fitted to the gradient of the loss on [x⁰ ‖ … ‖ xᴷ]

Trees suit columns that mean something each — prices, ages, counts — and combine them in ways that a small network
learns slowly; of bags of words they see the leading directions. Rounds go on while validation gets better
(`patience`), and the best are kept. Labels are no input.

scikit-learn offers no way to store its trees but pickle. So they are read off the fitted booster once (`_predictors`),
and what the tensors say of all training rows is compared with what the booster says, right after the fit: another
layout in another version would be an error there, never a wrong prediction later. Cost: rounds · C · n · (K+1)·F.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.methods.base import scaling_from
from gamlp.methods.hop_network import FittedHopNetwork, HopNetwork
from gamlp.progress import progress
from gamlp.settings import TARGET, Settings, checked
from gamlp.train.prediction import Prediction

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Context, Ids, Tensors
    from gamlp.model.trees import Trees
    from gamlp.storage.files import Array
    from gamlp.train.inputs import Inputs

LEAVES, SMALLEST, RIDGE = 15, 10, 1.0  # leaves of a tree, training nodes in a leaf, weight on the leaves' values
MANY_COLUMNS, SOME = 50, 0.3  # from so many columns on, a split looks at a share of them
NEVER = -20.0  # logit of a class that no training node has
SECONDS = 5e-9  # for a round, a class, a training node and a column, as measured on one thread of an AMD EPYC
OWN = frozenset(
    {"components", "hops", "normalization", "self_loops", "epochs", "learning_rate", "evaluate_every", "patience",
     "correct_and_smooth", "calibration_share"}
)  # fmt: skip
SHARED = TARGET | {"feature_scaling", "storage", "structure", "featureless", "embedding", "embedding_file"}


class Boosting(HopNetwork):
    """Boosted trees in place of the network; what stands before and after it is the same."""

    additions: ClassVar[Collection[str]] = ("+cs",)
    on_hops: ClassVar[bool] = False  # no network: it is not tuned as one, nor trained on several ranks
    takes_start: ClassVar[bool] = False
    several_labels: ClassVar[bool] = False

    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""
        return OWN | SHARED

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take of a recipe's common settings how features are read, and what is learned."""
        return {key: value for key, value in values.items() if key in SHARED}

    def settings_from(self, values: Mapping[str, Any]) -> Settings:
        """Check the settings; all others are what the method fixes."""
        fixed = self.fixed
        own = {key: value for key, value in values.items() if key not in fixed}
        chosen = checked(Settings, {**self.declared.defaults, **own}, of=self.base, own=self.setting_names())
        return chosen.model_copy(update={**fixed, "epochs": chosen.epochs[:1]})

    def idle(self, graph: Graph, settings: Settings) -> dict[str, str]:
        """Return the settings that change nothing, each with the reason."""
        own = self.setting_names()
        return {key: reason for key, reason in super().idle(graph, settings).items() if key in own}

    def expected_seconds(self, graph: Graph, split: Split, settings: Settings) -> float:
        """Count what all rounds look at."""
        rounds = settings.epochs[0] * len(split.train) * max(1, len(graph.classes))
        return SECONDS * rounds * columns_of(graph, settings)

    def expected_bytes(self, graph: Graph, split: Split, settings: Settings) -> int:
        """Count training and validation rows, as floats twice and as the booster's bins, and predictions."""
        from gamlp.storage.memory import FLOOR

        rows = len(split.train) + len(split.valid)
        return FLOOR * 2 // 3 + 24 * graph.nodes + 9 * rows * columns_of(graph, settings)

    def fit(self, graph: Graph, split: Split, settings: Settings, context: Context) -> FittedBoosting:
        """Propagate, then grow trees round by round."""
        from gamlp.train.inputs import predict
        from gamlp.train.subset_rotation import inputs_for

        fitted = FittedBoosting(settings, context.source.scaling(graph, settings), (), context)
        task = fitted.task(graph, graph.targets)
        inputs = inputs_for(task.hops, None, context.device, settings, memory=task.engine.memory)
        trees, fitted.history = grown(inputs, graph.labels, split, settings, context)
        fitted.take([trees.to(context.device)])
        logits, shares = predict(trees, inputs, task.rows)  # type: ignore[arg-type]
        fitted.prediction = Prediction(task.rows, context.objective.kind.probabilities(logits), shares)
        return fitted

    def load(self, settings: Settings, state: Any, tensors: Tensors, context: Context) -> FittedBoosting:
        """Take up the trees."""
        from gamlp.model.trees import Trees
        from gamlp.train.checkpoint import without_prefix

        scaling = scaling_from(settings, tensors)
        fitted = FittedBoosting(settings, scaling, (), replace(context, seed=state["seed"]))
        trees = Trees.of(state, without_prefix("stage-1", tensors))
        fitted.take([trees.to(context.device)])
        return fitted


class FittedBoosting(FittedHopNetwork):
    """Trees where others have a network."""

    def take(self, networks: list[Any]) -> None:
        """Keep the trees; what they learned are the values of their leaves."""
        self.networks = networks
        self.parameters = networks[-1].leaves

    def embed(self, graph: Graph, *, rows: Ids = None) -> tuple[Array, Array]:
        """Refuse: trees have no layer whose numbers could stand for a node."""
        raise SettingsError("Trees give no embeddings of nodes.\nNetworks on hops do: gamlp-…, sign, sagn and others.")

    def state(self) -> dict[str, Any]:
        """Return what is no tensor."""
        trees: Any = self.networks[-1]
        return {"seed": self.context.seed, "hops": trees.hops, "features": trees.features, "depth": trees.depth}


def columns_of(graph: Graph, settings: Settings) -> int:
    """Return how many columns a row of hops has."""
    return (settings.hops + 1) * (min(settings.components or 2**20, graph.features.shape[1] or 2**20))


def grown(
    inputs: Inputs, labels: Array, split: Split, settings: Settings, context: Context
) -> tuple[Trees, list[dict[str, float]]]:
    """Grow trees while validation gets better and there is time; return the best ones, and how it went."""
    train, valid = (inputs.gather(ids)[0].cpu() for ids in (split.train, split.valid))
    booster = new_booster(settings, context, train.flatten(1).shape[1])
    rows, objective, history = train.flatten(1).numpy(), context.objective, []
    best, best_rounds, trees = (-np.inf, -np.inf), 0, None
    rounds, most = 0, settings.epochs[0]
    with progress("grow trees", total=most) as advance:
        while rounds < most and (trees is None or time.monotonic() < context.ends):
            step = min(settings.evaluate_every, most - rounds)
            rounds += step
            booster.set_params(max_iter=rounds).fit(rows, labels[split.train])
            found = trees_of(booster, train.shape[1], train.shape[2], context.classes)
            if not len(split.valid):
                trees = found
                advance(step)
                continue
            said = objective.kind.probabilities(found(valid).logits.numpy())
            score = objective.score(said, labels[split.valid])
            history.append({"stage": 1.0, "epoch": rounds, "valid_loss": -score[1], **objective.facts(score[0])})
            advance(step, note=objective.note(score[0]))
            if score > best:
                best, best_rounds, trees = score, rounds, found
            elif rounds - best_rounds >= settings.patience:
                break
    assert trees is not None
    compare(trees, booster, train, best_rounds or rounds)
    return trees, history


def new_booster(settings: Settings, context: Context, columns: int) -> Any:
    """Return scikit-learn's booster, which goes on where it was when it is fitted again."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=settings.learning_rate, max_leaf_nodes=LEAVES, min_samples_leaf=SMALLEST, l2_regularization=RIDGE,
        max_features=SOME if columns > MANY_COLUMNS else 1.0, early_stopping=False, warm_start=True,
        class_weight=None if context.objective.weights is None else "balanced", random_state=context.seed % 2**32,
    )  # fmt: skip


def trees_of(booster: Any, hops: int, features: int, classes: int) -> Trees:
    """Read the trees off a fitted booster; of two classes it grows those of the second alone."""
    import torch

    from gamlp.model.trees import Trees

    seen = np.asarray(booster.classes_)
    each = seen if booster.n_trees_per_iteration_ > 1 else seen[-1:]
    found = [(target, tree.nodes) for trees in booster._predictors for target, tree in zip(each, trees, strict=True)]
    size = len(found), max(len(nodes) for _, nodes in found)
    feature, left, right = (np.zeros(size, np.int64) for _ in range(3))
    threshold, value = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for at, (_, nodes) in enumerate(found):
        count, leaf, itself = len(nodes), nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        feature[at, :count] = np.where(leaf, 0, nodes["feature_idx"])
        threshold[at, :count] = at_most(nodes["num_threshold"])
        left[at, :count] = np.where(leaf, itself, nodes["left"])
        right[at, :count] = np.where(leaf, itself, nodes["right"])
        value[at, :count] = np.where(leaf, nodes["value"], 0)
    start = np.full(classes, NEVER, np.float32)
    start[seen] = 0
    start[each] = booster._baseline_prediction.ravel()
    depth = max(int(nodes["depth"].max()) for _, nodes in found)
    arrays = {"feature": feature, "left": left, "right": right, "threshold": threshold, "value": value,
              "target": np.array([target for target, _ in found], np.int64), "start": start}  # fmt: skip
    return Trees(hops=hops, features=features, depth=depth, **{name: torch.from_numpy(a) for name, a in arrays.items()})


def at_most(thresholds: Array) -> Array:
    """Return the largest float32 that is not above each threshold: a float32 is below the one where it is the other."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def compare(trees: Trees, booster: Any, train: Any, rounds: int) -> None:
    """Refuse trees that do not say what the booster said of the training rows after so many rounds."""
    said = next(
        one for at, one in enumerate(booster.staged_decision_function(train.flatten(1).numpy()), 1) if at == rounds
    )
    ours = trees(train).logits.double().numpy()[:, booster.classes_]
    ours = ours[:, 1] if booster.n_trees_per_iteration_ == 1 else ours
    if not np.allclose(ours, said.reshape(ours.shape), rtol=1e-4, atol=1e-3):
        import sklearn

        raise SettingsError(
            f"The trees of scikit-learn {sklearn.__version__} could not be read: they say something else than its "
            "booster does.\nUse another method, and please report the version."
        )
