"""Several methods on the same hops, and the mixture of them that is best on validation: the default for a new graph.

    p = Σ_m w_m · p_m^(1/T_m) / Z_m            w from `selection`, T_m each member's own temperature

Candidates are fitted one after the other, the cheap ones first, each as if it stood alone; what they propagate alike
they share. `minutes` is kept: a candidate that is likely to take longer than what is left is not begun, but for the
first, and one that does is stopped. So is one that is far below the best so far (`train.stage.HOPELESS`); one whose
loss is no longer finite is left out. What was tried, what it scored and what it weighs stays with the result. From
there on the mixture is one model: it predicts, explains, takes new nodes and lies in one file like any other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from gamlp.errors import DivergedError
from gamlp.methods.base import Context, FittedMethod, Method
from gamlp.progress import log
from gamlp.settings import TARGET, Dropout, MetricName, checked
from gamlp.targets.metrics import DEFAULT
from gamlp.targets.registry import SINGLE
from gamlp.train.prediction import Prediction
from gamlp.trust.temperature import Temperature, fit_temperature

if TYPE_CHECKING:
    from gamlp.graph.build.changes import Moved
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.methods.base import Ids, Tensors
    from gamlp.storage.files import Array
    from gamlp.train.living import Living

LEFT_OUT = {"valid": None, "seconds": None}
USUAL_SHARE = 0.25  # of the most that training may take: early stopping ends it about there


class Usual(BaseModel):
    """A method of a graph's own recipe, with all its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    settings: dict[str, Any]


class PortfolioSettings(BaseModel):
    """What can be set about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: tuple[str, ...] = ()
    """Methods that are tried, each with the settings that suit the graph; none named = those that suit it."""
    usual: tuple[Usual, ...] = ()
    """Methods of the graph's own recipe, which are tried as well where no candidates are named."""
    minutes: Annotated[float, Field(gt=0)] = 3.0
    """For one seed: a candidate that would take longer than what is left is not begun."""
    correct_and_smooth: bool = False
    metric: MetricName = DEFAULT
    class_weight: Literal["none", "balanced"] = "none"
    calibration_share: Dropout = 0.0
    """Share of the validation nodes that choose nothing: the sets of predict --coverage are then promised by these."""

    @property
    def featureless(self) -> str:
        """Whether a method of the recipe reads embeddings, which are of one graph alone: `embeddings`, or nothing."""
        return "embeddings" if any(one.settings.get("featureless") == "embeddings" for one in self.usual) else ""


@dataclass(frozen=True)
class Candidate:
    """A method that is tried, with all its settings.

    A `usual` one is known to be good where labels are few, and is in the mixture unless validation refutes it.
    """

    method: Method
    settings: Any
    usual: bool = False

    def data(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        facts = {"method": self.method.name, "settings": self.method.settings_data(self.settings)}
        return facts | {"usual": True} if self.usual else facts


@dataclass(frozen=True, eq=False)
class Member:
    """A candidate that was fitted: its temperature, and its share in the mixture."""

    candidate: Candidate
    fitted: FittedMethod
    temperature: Temperature
    weight: float = 0.0

    def calibrated(self, said: Prediction) -> Prediction:
        """Return what it says, as sure as it may be."""
        return replace(said, probabilities=self.temperature(said.probabilities), logits=None)


class Portfolio(Method):
    """Candidates, and a greedy mixture of them."""

    some_rows: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True

    def setting_names(self) -> Collection[str]:
        """Return the settings that it has."""
        return PortfolioSettings.model_fields.keys()

    def shared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take of a recipe's common settings what chooses, and what classes weigh."""
        return {key: value for key, value in values.items() if key in TARGET}

    def settings_from(self, values: Mapping[str, Any]) -> PortfolioSettings:
        """Check the settings, and the names of the candidates."""
        from gamlp.methods.registry import method_named

        settings = checked(PortfolioSettings, values, of=self.base)
        for name in settings.candidates:
            method_named(name)
        for one in settings.usual:
            method_named(one.method).settings_from(one.settings)
        return settings

    def check(self, graph: Graph, settings: PortfolioSettings) -> None:
        """Refuse what one of the named candidates would refuse."""
        super().check(graph, settings)
        for candidate in planned(graph, graph.split_for(0), settings):
            candidate.method.check(graph, candidate.settings)

    def without_edges(self) -> Method:
        """Return a multi-layer perceptron."""
        from gamlp.methods.registry import method_named

        return method_named("mlp")

    def expected_seconds(self, graph: Graph, split: Split, settings: PortfolioSettings) -> float:
        """Add up the candidates, as far as there is time."""
        found = [one.method.expected_seconds(graph, split, one.settings) for one in planned(graph, split, settings)]
        return min(sum(filter(None, found)), 60 * settings.minutes)

    def expected_bytes(self, graph: Graph, split: Split, settings: PortfolioSettings) -> int | None:
        """Return what the largest candidate needs."""
        found = [one.method.expected_bytes(graph, split, one.settings) for one in planned(graph, split, settings)]
        return max(filter(None, found), default=None)

    def fit(self, graph: Graph, split: Split, settings: PortfolioSettings, context: Context) -> FittedPortfolio:
        """Fit the candidates while there is time, then choose.

        With a start the candidates are its members, each of which begins where it was.
        """
        ends = time.monotonic() + 60 * settings.minutes
        tried: list[dict[str, Any]] = []
        members: list[Member] = []
        before = context.start.members if isinstance(context.start, FittedPortfolio) else []
        plan: list[tuple[Candidate, FittedMethod | None]] = [(one.candidate, one.fitted) for one in before]
        plan = plan or [(one, None) for one in planned(graph, split, settings)]
        rival = -math.inf
        for number, (candidate, start) in enumerate(plan):
            needed = USUAL_SHARE * (candidate.method.expected_seconds(graph, split, candidate.settings) or 0.0)
            if members and needed > ends - time.monotonic():
                log.info("%s is left out: it would take about %.0f s.", candidate.method.name, needed)
                tried.append({**candidate.data(), **LEFT_OUT, "why": "no time"})
                continue
            folder = context.folder and context.folder / f"candidate-{number}"
            started = time.monotonic()
            within = replace(context, folder=folder, start=start, ends=ends, rival=rival)
            try:
                fitted = candidate.method.fit(graph, split, candidate.settings, within)
            except DivergedError as error:
                if not members and number == len(plan) - 1:
                    raise
                log.warning("%s is left out: %s", candidate.method.name, str(error).partition("\n")[0])
                tried.append({**candidate.data(), **LEFT_OUT, "why": "diverged"})
                continue
            member, score = judged(candidate, fitted, graph, split, context)
            members.append(member)
            if score is not None:
                rival = max(rival, context.objective.metric.better(score))
            tried.append({**candidate.data(), "valid": score, "seconds": time.monotonic() - started})
        return chosen(members, tried, graph, split, context)

    def load(self, settings: Any, state: Mapping[str, Any], tensors: Tensors, context: Context) -> FittedPortfolio:
        """Take up the members."""
        from gamlp.methods.registry import method_named
        from gamlp.train.checkpoint import without_prefix

        members = []
        for number, data in enumerate(state["members"]):
            method = method_named(data["method"])
            own = method.settings_from(data["settings"])
            fitted = method.load(own, data["state"], without_prefix(f"member-{number}", tensors), context)
            calibration = Temperature(float(data["temperature"]))
            candidate = Candidate(method, own, data.get("usual", False))
            members.append(Member(candidate, fitted, calibration, float(data["weight"])))
        return FittedPortfolio(members)


def planned(graph: Graph, split: Split, settings: PortfolioSettings) -> list[Candidate]:
    """Return what is tried on a graph: settings that suit it, the metric and class weights that were asked for."""
    from gamlp.methods.registry import method_named
    from gamlp.recipes.adapt import Outline
    from gamlp.recipes.candidates import Plan, as_candidate, candidates_for
    from gamlp.recipes.recipe import load_recipe

    outline, recipe = Outline.of(graph, split), load_recipe("default")
    several = graph.labels.ndim > 1
    usual = () if settings.candidates else settings.usual
    any_graph: Plan = [] if outline.relations and usual else candidates_for(outline, several=several)
    plan: Plan = [(name, {}) for name in settings.candidates] or any_graph
    target = {key: getattr(settings, key) for key in TARGET}
    found = []
    for name, own in plan:
        method = method_named(name)
        # a mixture does not tell nodes of the split from others: reliable ones are looked for among all
        every = {"reliable_from": "all"} if method.staged else {}
        chosen_for_it = {key: value for key, value in (every | own | target).items() if method.takes(key)}
        found.append(Candidate(method, recipe.resolve(method, chosen_for_it, outline)))
    if outline.few_labels and not settings.candidates and found:
        found[-1] = replace(found[-1], usual=True)
    for one in usual:
        method = method_named(one.method)
        own = as_candidate(one.settings, outline) | {key: target[key] for key in target if method.takes(key)}
        found.append(Candidate(method, method.settings_from(own), outline.few_labels))
    return found if len(split.valid) else found[-1:]  # nothing to choose by: the usual one


def judged(
    candidate: Candidate, fitted: FittedMethod, graph: Graph, split: Split, context: Context
) -> tuple[Member, float | None]:
    """Return a fitted candidate with its temperature, and its score on validation."""
    said, labels = on_validation(fitted.prediction, split), graph.labels[split.valid]
    if not len(labels):
        return Member(candidate, fitted, Temperature()), None
    single = context.objective.kind is SINGLE
    temperature = fit_temperature(said, labels, context.seed) if single else Temperature()
    return Member(candidate, fitted, temperature), context.objective.metric.better(
        context.objective.score(said, labels)[0]
    )


def chosen(
    members: Sequence[Member], tried: list[dict[str, Any]], graph: Graph, split: Split, context: Context
) -> FittedPortfolio:
    """Return the mixture that is best on validation; `tried` is completed with the weights."""
    from gamlp.methods.selection import mixture_weights

    labels = graph.labels[split.valid]
    said = [member.temperature(on_validation(member.fitted.prediction, split)) for member in members]
    usual = [at for at, member in enumerate(members) if member.candidate.usual]
    weights = mixture_weights(context.objective, said, labels, context.seed, usual)
    fitted_ones = iter(weights.tolist())
    for line in tried:
        line["weight"] = next(fitted_ones) if line["seconds"] is not None else 0.0
    kept = [replace(member, weight=weight) for member, weight in zip(members, weights.tolist(), strict=True) if weight]
    fitted = FittedPortfolio(kept)
    fitted.tried = tried
    fitted.prediction = mixed(kept, [member.fitted.prediction for member in kept])
    first = max(kept, key=lambda member: member.weight).fitted
    fitted.history, fitted.stages, fitted.relations = first.history, first.stages, first.relations
    return fitted


def on_validation(said: Prediction | None, split: Split) -> Array:
    """Return the probabilities of the validation nodes, (n, C)."""
    assert said is not None
    return said.probabilities[np.searchsorted(said.rows, split.valid)]


def mixed(members: Sequence[Member], said: Sequence[Prediction | None]) -> Prediction:
    """Return Σ w_m p_m; the attention is that of the members that have any, by their weights."""
    total: Array | None = None
    hops: list[tuple[float, Array]] = []
    for member, one in zip(members, said, strict=True):
        assert one is not None
        part = np.float32(member.weight) * member.calibrated(one).probabilities
        total = part if total is None else total + part
        if one.weights is not None:
            hops.append((member.weight, one.weights))
    assert total is not None and said[0] is not None
    return Prediction(said[0].rows, total, mixed_attention(hops))


def mixed_attention(parts: Sequence[tuple[float, Array]]) -> Array | None:
    """Return the mean attention over the hops, (R, K+1) for the largest K; None where there is none."""
    if not parts:
        return None
    result = np.zeros((len(parts[0][1]), max(weights.shape[1] for _, weights in parts)), np.float32)
    whole = sum(share for share, _ in parts)
    for share, weights in parts:
        result[:, : weights.shape[1]] += np.float32(share / whole) * weights
    return result


class FittedPortfolio(FittedMethod):
    """The members of the mixture."""

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        self.members = list(members)
        self.parameters = sum(member.fitted.parameters for member in members)

    def predict(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Prediction:
        """Ask every member."""
        asked: dict[str, Any] = {"candidates": candidates, "rows": rows}
        return mixed(self.members, [member.fitted.predict(graph, known, **asked) for member in self.members])

    def living(self, graph: Graph, known: Array, *, candidates: Ids = None, rows: Ids = None) -> Living:
        """Keep what every member needs of the graph."""
        from gamlp.train.living_mixture import LivingMixture

        asked: dict[str, Any] = {"candidates": candidates, "rows": rows}
        kept = [member.fitted.living(graph, known, **asked) for member in self.members]
        return LivingMixture(graph, tuple(kept), lambda said: mixed(self.members, said))

    def carry(self, graph: Graph, changed: Graph, moved: Moved, *, directed: bool) -> None:
        """Let every member carry what it keeps."""
        for member in self.members:
            member.fitted.carry(graph, changed, moved, directed=directed)

    def embed(self, graph: Graph, *, rows: Ids = None) -> tuple[Array, Array]:
        """Return the embeddings of the member that weighs most among those that give any."""
        able = [member for member in self.members if member.candidate.method.on_hops] or self.members
        return max(able, key=lambda member: member.weight).fitted.embed(graph, rows=rows)

    def state(self) -> dict[str, Any]:
        """Return what the members are, and how they are mixed."""
        return {
            "members": [
                {**one.candidate.data(), "state": one.fitted.state(), "weight": one.weight,
                 "temperature": one.temperature.value}
                for one in self.members
            ]
        }  # fmt: skip

    def tensors(self) -> Tensors:
        """Return the tensors of all members."""
        from gamlp.train.checkpoint import prefixed

        numbered = enumerate(self.members)
        return {
            name: value
            for number, member in numbered
            for name, value in prefixed(f"member-{number}", member.fitted.tensors()).items()
        }
