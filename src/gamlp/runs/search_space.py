"""Which settings a search tries, and which values of each: a table.

A setting is left alone where the method fixes it, where the user has set it, and where it would change nothing: label
hops without labels, a threshold without stages. The order matters: a setting stands below what it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gamlp.methods import Method
from gamlp.settings import Settings, settings_from

if TYPE_CHECKING:
    import optuna

Condition = Callable[[Method, Settings], bool]


def always(method: Method, settings: Settings) -> bool:
    """For settings that every network on hops has."""
    return True


def with_labels(method: Method, settings: Settings) -> bool:
    """For settings of propagated labels."""
    return settings.labels


def staged(method: Method, settings: Settings) -> bool:
    """For settings of the later stages."""
    return method.staged


def distilled(method: Method, settings: Settings) -> bool:
    """For settings of the distillation loss."""
    return method.staged and settings.pseudo_labels == "distil"


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]
    when: Condition = always

    def suggest(self, trial: optuna.Trial, key: str) -> Any:
        """Let the search choose."""
        return trial.suggest_categorical(key, list(self.values))


@dataclass(frozen=True)
class Whole:
    """A whole number, both ends included."""

    low: int
    high: int
    when: Condition = always

    def suggest(self, trial: optuna.Trial, key: str) -> Any:
        """Let the search choose."""
        return trial.suggest_int(key, self.low, self.high)


@dataclass(frozen=True)
class Real:
    """A number by steps, or else on a logarithmic scale, to three digits."""

    low: float
    high: float
    step: float | None = None
    when: Condition = always

    def suggest(self, trial: optuna.Trial, key: str) -> Any:
        """Let the search choose."""
        if self.step is None:
            return float(f"{trial.suggest_float(key, self.low, self.high, log=True):.3g}")
        return round(trial.suggest_float(key, self.low, self.high, step=self.step), 10)


SPACE: dict[str, Choice | Whole | Real] = {
    "feature_scaling": Choice(("none", "row", "unit", "standard")),
    "normalization": Choice((0.0, 0.5, 1.0)),
    "self_loops": Choice((True, False)),
    "hops": Whole(2, 12),
    "hop_layers": Choice((0, 1, 2)),
    "hidden": Choice((64, 128, 256, 512)),
    "head_layers": Whole(1, 4),
    "residual": Choice((True, False)),
    "batch_norm": Choice((True, False)),
    "jk_layers": Whole(1, 4, when=lambda method, settings: settings.combiner == "jk"),
    "decay": Real(0.05, 0.5, step=0.05, when=lambda method, settings: settings.combiner == "decay"),
    "input_dropout": Real(0.0, 0.8, step=0.1),
    "dropout": Real(0.0, 0.8, step=0.1),
    "labels": Choice((True, False)),
    "label_hops": Whole(1, 10, when=with_labels),
    "learning_rate": Real(1e-4, 1e-1),
    "weight_decay": Choice((0.0, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3)),
    "threshold": Real(0.5, 0.95, step=0.05, when=staged),
    "temperature": Choice((1.0, 0.5, 0.1), when=distilled),
    "gamma": Real(0.03, 10.0, when=distilled),
}


def suggested(
    trial: optuna.Trial, method: Method, start: Settings, pinned: Collection[str]
) -> tuple[dict[str, Any], Settings]:
    """Return what the search changes in `start`, and the settings that this gives."""
    changes: dict[str, Any] = {}
    settings = start
    for key, values in SPACE.items():
        if key not in pinned and key not in method.fixed and values.when(method, settings):
            changes[key] = values.suggest(trial, key)
            settings = settings.model_copy(update={key: changes[key]})
    return changes, settings_from(settings.model_dump())
